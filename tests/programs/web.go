// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

// Go's HTTP: `web serve ADDRESS FOLDER`, and `web fetch URL FILE...`, which compares what it gets.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

func fetch(url, path string) error {
	answer, err := http.Get(url + filepath.Base(path))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	want, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s: %d octets, not %d", path, len(got), len(want))
	}
	return nil
}

func fetchAll(url string, paths []string) error {
	done := make(chan error)
	for _, path := range paths {
		go func(path string) { done <- fetch(url, path) }(path)
	}
	for range paths {
		if err := <-done; err != nil {
			return err
		}
	}
	fmt.Println("every file is right")
	return nil
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = http.ListenAndServe(os.Args[2], http.FileServer(http.Dir(os.Args[3])))
	} else {
		err = fetchAll(os.Args[2], os.Args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
