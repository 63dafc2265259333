package plugin

import (
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/abi"
)

// snapshotResult takes what a snapshot provider says: the version it is about
// to give, or that there is none. It is said once, before the first output.
func (r *run) snapshotResult(in *instance, m api.Module, s []uint64) {
	text := in.memory(m, "result_write", s[0], s[1])
	if r.snapshot != nil {
		in.stop(errorf(CodeOutputInvalid, "it said twice which version it gives"))
	}
	in.charge(8 * int64(len(text))) // it is parsed
	said, err := abi.ParseSnapshotResult(text)
	if err != nil {
		in.stop(because(err, CodeOutputInvalid, "the version of a snapshot is refused"))
	}
	r.snapshot = &said
	if r.call.OnSnapshot != nil {
		r.allowance.leave()
		if err := r.call.OnSnapshot(said); err != nil {
			in.stop(err)
		}
		if err := r.allowance.back(); err != nil {
			in.stop(err)
		}
	}
	s[0] = 0
}

// checkSnapshot holds that a provider which returned has said something.
func (r *run) checkSnapshot() error {
	if r.function.Kind == abi.KindSnapshot && r.snapshot == nil {
		return errorf(CodeOutputInvalid, "it returned without saying which version it gives, or that there is none")
	}
	return nil
}
