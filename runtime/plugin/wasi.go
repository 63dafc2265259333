package plugin

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/abi"
)

// Error numbers of WASI preview 1.
const (
	wasiSuccess = 0
	wasiEBADF   = 8
	wasiEFAULT  = 21
	wasiEINVAL  = 28
	wasiENOSYS  = 52
)

// wasiImports is all of wasi_snapshot_preview1, so that the runtimes of Go, C
// and Rust link. Only what they need to start, to see (the batch's) time and
// to write to the log does anything: there is no file, socket, argument or
// environment behind it.
var wasiImports = []hostFunc{
	{"args_get", "ii", "i", wasiOK},
	{"args_sizes_get", "ii", "i", wasiNone},
	{"environ_get", "ii", "i", wasiOK},
	{"environ_sizes_get", "ii", "i", wasiNone},
	{"clock_res_get", "ii", "i", clockRes},
	{"clock_time_get", "ili", "i", clockTime},
	{"random_get", "ii", "i", randomGet},
	{"sched_yield", "", "i", wasiOK},
	{"poll_oneoff", "iiii", "i", pollOneoff},
	{"proc_exit", "i", "", procExit},
	{"proc_raise", "i", "i", wasiNoSys},
	{"fd_write", "iiii", "i", fdWrite},
	{"fd_read", "iiii", "i", fdRead},
	{"fd_close", "i", "i", fdStandard},
	{"fd_fdstat_get", "ii", "i", fdStat},
	{"fd_advise", "illi", "i", wasiBadFD},
	{"fd_allocate", "ill", "i", wasiBadFD},
	{"fd_datasync", "i", "i", wasiBadFD},
	{"fd_fdstat_set_flags", "ii", "i", wasiBadFD},
	{"fd_fdstat_set_rights", "ill", "i", wasiBadFD},
	{"fd_filestat_get", "ii", "i", wasiBadFD},
	{"fd_filestat_set_size", "il", "i", wasiBadFD},
	{"fd_filestat_set_times", "illi", "i", wasiBadFD},
	{"fd_pread", "iiili", "i", wasiBadFD},
	{"fd_prestat_get", "ii", "i", wasiBadFD},
	{"fd_prestat_dir_name", "iii", "i", wasiBadFD},
	{"fd_pwrite", "iiili", "i", wasiBadFD},
	{"fd_readdir", "iiili", "i", wasiBadFD},
	{"fd_renumber", "ii", "i", wasiBadFD},
	{"fd_seek", "ilii", "i", wasiBadFD},
	{"fd_sync", "i", "i", wasiBadFD},
	{"fd_tell", "ii", "i", wasiBadFD},
	{"path_create_directory", "iii", "i", wasiNoSys},
	{"path_filestat_get", "iiiii", "i", wasiNoSys},
	{"path_filestat_set_times", "iiiilli", "i", wasiNoSys},
	{"path_link", "iiiiiii", "i", wasiNoSys},
	{"path_open", "iiiiillii", "i", wasiNoSys},
	{"path_readlink", "iiiiii", "i", wasiNoSys},
	{"path_remove_directory", "iii", "i", wasiNoSys},
	{"path_rename", "iiiiii", "i", wasiNoSys},
	{"path_symlink", "iiiii", "i", wasiNoSys},
	{"path_unlink_file", "iii", "i", wasiNoSys},
	{"sock_accept", "iii", "i", wasiNoSys},
	{"sock_recv", "iiiiii", "i", wasiNoSys},
	{"sock_send", "iiiii", "i", wasiNoSys},
	{"sock_shutdown", "ii", "i", wasiNoSys},
}

func setErrno(s []uint64, errno uint64) {
	if len(s) > 0 {
		s[0] = errno
	}
}

func wasiOK(_ *instance, _ api.Module, s []uint64)    { setErrno(s, wasiSuccess) }
func wasiNoSys(_ *instance, _ api.Module, s []uint64) { setErrno(s, wasiENOSYS) }
func wasiBadFD(_ *instance, _ api.Module, s []uint64) { setErrno(s, wasiEBADF) }

// put32 and put64 write one number; false when it does not fit the memory.
func put32(m api.Module, ptr uint64, v uint32) bool { return m.Memory().WriteUint32Le(uint32(ptr), v) }
func put64(m api.Module, ptr uint64, v uint64) bool { return m.Memory().WriteUint64Le(uint32(ptr), v) }

// answer sets success or EFAULT.
func answer(s []uint64, ok bool) {
	if ok {
		setErrno(s, wasiSuccess)
	} else {
		setErrno(s, wasiEFAULT)
	}
}

// wasiNone tells that there are no arguments or variables, of no bytes.
func wasiNone(_ *instance, m api.Module, s []uint64) {
	answer(s, put32(m, s[0], 0) && put32(m, s[1], 0))
}

func clockRes(_ *instance, m api.Module, s []uint64) {
	if uint32(s[0]) > 3 {
		setErrno(s, wasiEINVAL)
		return
	}
	answer(s, put64(m, s[1], clockStep))
}

func clockTime(in *instance, m api.Module, s []uint64) {
	switch uint32(s[0]) {
	case 0:
		answer(s, put64(m, s[2], uint64(in.clock.wall)))
	case 1, 2, 3: // monotonic, and CPU time of process and thread
		answer(s, put64(m, s[2], uint64(in.clock.monotonic())))
	default:
		setErrno(s, wasiEINVAL)
	}
}

func randomGet(in *instance, m api.Module, s []uint64) {
	b, ok := m.Memory().Read(uint32(s[0]), uint32(s[1]))
	const piece = 1 << 20 // between two looks at the limits
	for rest := b; ok && len(rest) > 0; {
		n := min(len(rest), piece)
		in.charge(2 * int64(n))
		in.random.fill(rest[:n])
		rest = rest[n:]
	}
	answer(s, ok)
}

// Sizes of the structures of poll_oneoff.
const (
	subscriptionSize = 48
	eventSize        = 32
	maxSubscriptions = 4096
)

// pollOneoff answers every subscription at once. A clock's timeout moves the
// monotonic clock, so that a sleep ends and costs nothing; anything else is
// about a file descriptor, and there are none.
func pollOneoff(in *instance, m api.Module, s []uint64) {
	from, to, n := uint64(uint32(s[0])), uint64(uint32(s[1])), uint64(uint32(s[2]))
	if n == 0 || n > maxSubscriptions {
		setErrno(s, wasiEINVAL)
		return
	}
	subs, ok := m.Memory().Read(uint32(from), uint32(n*subscriptionSize))
	events, ok2 := m.Memory().Read(uint32(to), uint32(n*eventSize))
	if !ok || !ok2 {
		setErrno(s, wasiEFAULT)
		return
	}
	out := make([]byte, 0, n*eventSize)
	longest := int64(0)
	for ; len(subs) > 0; subs = subs[subscriptionSize:] {
		var event [eventSize]byte
		copy(event[:8], subs[:8]) // user data
		kind := subs[8]
		event[10] = kind
		if kind == 0 {
			timeout, absolute := int64(binary.LittleEndian.Uint64(subs[24:])), binary.LittleEndian.Uint16(subs[40:])&1 != 0
			if absolute {
				timeout -= in.clock.mono
			}
			longest = max(longest, timeout)
		} else {
			binary.LittleEndian.PutUint16(event[8:], wasiEBADF)
		}
		out = append(out, event[:]...)
	}
	in.charge(int64(len(out)))
	in.clock.sleep(longest)
	copy(events, out)
	answer(s, put32(m, s[3], uint32(n)))
}

func procExit(in *instance, _ api.Module, s []uint64) {
	in.stop(errorf(CodeTrap, "the guest left with proc_exit(%d)", uint32(s[0])))
}

func fdStandard(_ *instance, _ api.Module, s []uint64) {
	if uint32(s[0]) <= 2 {
		setErrno(s, wasiSuccess)
	} else {
		setErrno(s, wasiEBADF)
	}
}

// fdStat says that 0, 1 and 2 are character devices.
func fdStat(_ *instance, m api.Module, s []uint64) {
	if uint32(s[0]) > 2 {
		setErrno(s, wasiEBADF)
		return
	}
	stat := [24]byte{2}
	answer(s, m.Memory().Write(uint32(s[1]), stat[:]))
}

// fdRead is at the end of standard input.
func fdRead(_ *instance, m api.Module, s []uint64) {
	if uint32(s[0]) != 0 {
		setErrno(s, wasiEBADF)
		return
	}
	answer(s, put32(m, s[3], 0))
}

// Bounds of one fd_write: more vectors than any system takes, and a piece
// after which a write comes back short.
const (
	maxVectors  = 1024
	mostWritten = 64 << 10
)

// fdWrite sends lines to the log: standard output as info, standard error as warn.
func fdWrite(in *instance, m api.Module, s []uint64) {
	fd := uint32(s[0])
	if fd != 1 && fd != 2 {
		setErrno(s, wasiEBADF)
		return
	}
	n := uint64(uint32(s[2]))
	if n > maxVectors {
		setErrno(s, wasiEINVAL)
		return
	}
	vecs, ok := m.Memory().Read(uint32(s[1]), uint32(n*8))
	if !ok {
		setErrno(s, wasiEFAULT)
		return
	}
	total := uint64(0)
	for ; len(vecs) > 0 && total < mostWritten; vecs = vecs[8:] {
		b, ok := m.Memory().Read(binary.LittleEndian.Uint32(vecs), binary.LittleEndian.Uint32(vecs[4:]))
		if !ok {
			setErrno(s, wasiEFAULT)
			return
		}
		b = b[:min(uint64(len(b)), mostWritten-total)]
		in.lines[fd-1].write(in, b)
		total += uint64(len(b))
	}
	in.charge(int64(total))
	answer(s, put32(m, s[3], uint32(total)))
}

// lineWriter gathers what a guest writes to a standard stream into lines.
type lineWriter struct {
	level abi.LogLevel
	text  []byte
}

func (w *lineWriter) write(in *instance, b []byte) {
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte("\n"))
		if room := in.limits.TextBytes - int64(len(w.text)); int64(len(line)) > room {
			line = line[:room]
		}
		w.text = append(w.text, line...)
		if found {
			w.flush(in)
		}
		b = rest
	}
}

func (w *lineWriter) flush(in *instance) {
	if len(w.text) == 0 {
		return
	}
	line := string(bytes.ToValidUTF8(w.text, []byte("\uFFFD")))
	w.text = w.text[:0]
	in.noteDying(line)
	in.log(w.level, line)
}

// noteDying keeps the line with which a guest's runtime says why it dies, so that
// the error of the trap can say it too.
func (in *instance) noteDying(line string) {
	for _, prefix := range []string{"panic: ", "fatal error: ", "thread '", "Assertion failed"} {
		if in.dying == "" && len(line) >= len(prefix) && line[:len(prefix)] == prefix {
			in.dying = clip(line, 300)
		}
	}
}

// clip cuts a text for a message, between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
