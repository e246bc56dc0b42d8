// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What rdma-unit-test has to be told of a device: it goes into its internal/ as introspection_anywarp.h, and
// IntrospectionAnywarp::Register() into its unit/gunit_main.cc, beside those of other drivers.
#ifndef TESTS_ECOSYSTEM_RDMA_UNIT_TEST_H
#define TESTS_ECOSYSTEM_RDMA_UNIT_TEST_H

#include "internal/introspection_registrar.h"
#include "public/introspection.h"

#include <string>

namespace rdma_unit_test
{

class IntrospectionAnywarp : public NicIntrospection
{
      public:
	static void Register()
	{
		IntrospectionRegistrar::GetInstance().Register(
			"anywarp", [](const std::string &name, const ibv_device_attr &attr) {
				return new IntrospectionAnywarp(name, attr);
			});
	}

	bool SupportsReRegMr() const override
	{
		return true;
	}

	// A Terminate tells the sender which Send with Invalidate was refused.
	bool NoNakOnSendInvalidateErrors() const override
	{
		return false;
	}

	// What is posted before the peer's QP is in RTR waits for it.
	bool BuffersMessagesWhenNotReadyToReceive() const override
	{
		return true;
	}

	// As Soft-RoCE's: hundreds of threads that poll have fewer processors here than a machine with adapters.
	bool IsSlowNic() const override
	{
		return true;
	}

      private:
	IntrospectionAnywarp(const std::string &name, const ibv_device_attr &attr)
	    : NicIntrospection(name, attr)
	{
	}
};

} // namespace rdma_unit_test

#endif
