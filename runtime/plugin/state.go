package plugin

import (
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/abi"
)

// stateful gives the call when its function has state.
func (in *instance) stateful() *run {
	if in.call != nil && in.call.function.Kind == abi.KindStateful {
		return in.call
	}
	return nil
}

const noState = "[" + CodeNotSupported + "] only functions of kind stateful have state"

// stateRead gives the state that the last committed micro-batch left, however
// often the call wrote a new one.
func stateRead(in *instance, m api.Module, s []uint64) {
	r := in.stateful()
	if r == nil {
		s[0] = in.refuse(noState)
		return
	}
	s[0] = in.give(m, "state_read", r.call.State, s[0], s[1])
}

// stateWrite takes the new state; the last one counts, when the call succeeds.
func stateWrite(in *instance, m api.Module, s []uint64) {
	r := in.stateful()
	if r == nil {
		s[0] = in.refuse(noState)
		return
	}
	b := in.memory(m, "state_write", s[0], s[1])
	if int64(len(b)) > in.limits.StateBytes {
		in.stop(overLimit("state_bytes", in.limits.StateBytes, "the state"))
	}
	r.state, r.stateWritten = append(r.state[:0], b...), true
	s[0] = 0
}
