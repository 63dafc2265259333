package plugin

import (
	"math"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/abi"
)

// weirImports is everything the host does for a guest, besides wasiImports.
var weirImports = []hostFunc{
	{"input_next", "i", "l", inputNext},
	{"input_read", "iii", "i", inputRead},
	{"input_close", "i", "i", inputClose},
	{"output_write", "iii", "i", outputWrite},
	{"query", "ii", "i", queryOpen},
	{"conf_get", "iiii", "i", confGet},
	{"context_read", "ii", "i", contextRead},
	{"result_write", "ii", "i", resultWrite},
	{"metric_add", "iid", "", metricAdd},
	{"row_error", "ilii", "", rowError},
	{"state_read", "ii", "i", stateRead},
	{"state_write", "ii", "i", stateWrite},
	{"last_error", "ii", "i", func(in *instance, m api.Module, s []uint64) {
		s[0] = in.give(m, "last_error", []byte(in.lastError), s[0], s[1])
	}},
	{"log", "iii", "", func(in *instance, m api.Module, s []uint64) {
		level := abi.LogLevel(int32(s[0]))
		if level < abi.LogDebug || level > abi.LogError {
			level = abi.LogError
		}
		in.log(level, in.text(m, "log", s[1], s[2]))
	}},
	{"fail", "ii", "", func(in *instance, m api.Module, s []uint64) {
		in.failed, in.failText = true, in.text(m, "fail", s[0], s[1])
	}},
}

// text is a text for people: cut at the limit, its bad bytes replaced.
func (in *instance) text(m api.Module, what string, ptr, size uint64) string {
	b := in.memory(m, what, ptr, size)
	cut := int64(len(b)) > in.limits.TextBytes
	if cut {
		b = b[:in.limits.TextBytes]
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if cut {
		s += "…"
	}
	return s
}

func inputNext(in *instance, _ api.Module, s []uint64) {
	i := in.input(s[0])
	if i == nil {
		s[0] = minusOne64
		return
	}
	in.checkpoint()
	size, err := i.next()
	if err != nil {
		if i.err == nil { // not the source's own failure, but one of the call
			in.stop(err)
		}
		in.lastError = err.Error()
		s[0] = minusOne64
		return
	}
	s[0] = uint64(size)
}

func inputRead(in *instance, m api.Module, s []uint64) {
	i := in.input(s[0])
	if i == nil {
		s[0] = minusOne32
		return
	}
	switch size := i.size; {
	case size == 0:
		s[0] = in.refuse("input_read: the input has no current message; call input_next")
	case uint64(uint32(s[2])) < uint64(size):
		s[0] = in.refuse("input_read: the buffer is smaller than the message")
	default:
		i.read(in.memory(m, "input_read", s[1], uint64(size)))
		s[0] = api.EncodeI32(int32(size))
	}
}

func inputClose(in *instance, _ api.Module, s []uint64) {
	i := in.input(s[0])
	if i == nil {
		s[0] = minusOne32
		return
	}
	i.close()
	s[0] = 0
}

// input finds an input of the current call; nil, with the text for
// last_error, when there is none.
func (in *instance) input(number uint64) *input {
	if in.call == nil {
		in.lastError = "there are no inputs outside of weir_call"
		return nil
	}
	if n := uint64(uint32(number)); n < uint64(len(in.call.inputs)) {
		return in.call.inputs[n]
	}
	in.lastError = "the function has no such input"
	return nil
}

func outputWrite(in *instance, m api.Module, s []uint64) {
	if in.call == nil {
		in.stop(errorf(CodeOutputInvalid, "output_write outside of weir_call"))
	}
	number := uint32(s[0])
	if n := len(in.call.outputs); int64(number) >= int64(n) {
		in.stop(errorf(CodeOutputInvalid, "output_write to output %d; the function has %d, counted from 0", number, n))
	}
	in.checkpoint()
	if err := in.call.write(int(number), in.memory(m, "output_write", s[1], s[2])); err != nil {
		in.stop(err)
	}
	s[0] = 0
}

func confGet(in *instance, m api.Module, s []uint64) {
	key := string(in.memory(m, "conf_get", s[0], s[1]))
	value, ok := in.conf[key]
	if !ok || in.call != nil && !abi.Granted(in.call.function.Conf, key) {
		s[0] = in.refuse("conf_get: the key is not set, or not granted to this function")
		return
	}
	s[0] = in.give(m, "conf_get", []byte(value), s[2], s[3])
}

func contextRead(in *instance, m api.Module, s []uint64) {
	if in.call == nil {
		s[0] = in.refuse("context_read: there is no context outside of weir_call")
		return
	}
	s[0] = in.give(m, "context_read", in.call.context, s[0], s[1])
}

func resultWrite(in *instance, m api.Module, s []uint64) {
	switch {
	case in.call != nil && in.call.function.Kind == abi.KindSnapshot:
		in.call.snapshotResult(in, m, s)
	case !in.describing:
		s[0] = in.refuse("[" + CodeNotSupported + "] result_write is for weir_describe and for snapshot providers")
	case in.result != nil:
		s[0] = in.refuse("result_write was called before")
	default:
		b := in.memory(m, "result_write", s[0], s[1])
		if int64(len(b)) > in.limits.ManifestBytes {
			in.stop(overLimit("manifest_bytes", in.limits.ManifestBytes, "the manifest"))
		}
		in.result = append([]byte{}, b...)
		s[0] = 0
	}
}

func metricAdd(in *instance, m api.Module, s []uint64) {
	name, value := in.memory(m, "metric_add", s[0], s[1]), api.DecodeF64(s[2])
	if in.call == nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if err := in.call.metrics.add(name, value, in.limits.MetricNames); err != nil {
		in.stop(err)
	}
}

func rowError(in *instance, m api.Module, s []uint64) {
	number, row := uint32(s[0]), int64(s[1])
	text := in.memory(m, "row_error", s[2], s[3])
	if in.input(uint64(number)) == nil {
		in.stop(errorf(CodeOutputInvalid, "row_error for input %d: %s", number, in.lastError))
	}
	if int64(len(text)) > 8*in.limits.TextBytes {
		in.stop(overLimit("text_bytes", in.limits.TextBytes, "the text of a row error"))
	}
	in.charge(8 * int64(len(text))) // it is parsed
	if err := in.call.rowError(int(number), row, text); err != nil {
		in.stop(err)
	}
}
