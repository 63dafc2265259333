package cloud

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// processKey is the metadata of a lock's object that names its holder's process.
const processKey = "weirprocess"

// thisProcess names this process so that another one of the same machine can
// tell whether it still lives, and one elsewhere that it cannot: the boot, the
// space of process numbers, the number, and when the process began. It is ""
// where /proc does not say so.
func thisProcess() string {
	began, ok := processStart("self")
	place := machine()
	if !ok || place == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%s", place, os.Getpid(), began)
}

// machine names the boot and the space of process numbers.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + ":" + strings.Trim(space, "pid:[]")
}

// processStart gives when a process began, in ticks since the boot; it is not
// ok for one that is gone or only waits for its parent to look.
func processStart(number string) (string, bool) {
	stat, err := os.ReadFile("/proc/" + number + "/stat")
	if err != nil {
		return "", false
	}
	// The name of the program, in parentheses, may hold anything.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}

// died tells whether a process is known to have ended; of one elsewhere nothing is known.
func died(process string) bool {
	place, began, ok := cutLast(process)
	if !ok {
		return false
	}
	place, number, ok := cutLast(place)
	if n, err := strconv.Atoi(number); !ok || err != nil || n <= 0 || place == "" || place != machine() {
		return false
	}
	now, alive := processStart(number)
	return !alive || now != began
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
