// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//! Finds anywarp's libraries at build time, so that the program and its tests run over them by themselves, also where a crate loads
//! them when the program runs. Without anywarp in PATH the program stays as it is: `anywarp run` runs it.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PATH");
    let Ok(told) = Command::new("anywarp").args(["run", "--", "printenv", "LD_LIBRARY_PATH"]).output() else { return };
    let paths = String::from_utf8_lossy(&told.stdout);
    if let Some(folder) = paths.trim().split(':').next().filter(|folder| !folder.is_empty()) {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
