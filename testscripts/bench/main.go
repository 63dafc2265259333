package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
)

// figure is one line of bench.jsonl.
type figure struct {
	ID      string  `json:"id"`
	Case    string  `json:"case,omitempty"`
	Value   float64 `json:"value"`
	CPU     float64 `json:"cpu_value,omitempty"` // the same ratio of processor time, which a busy machine does not change
	Better  string  `json:"better"`              // higher or lower
	Must    float64 `json:"must"`
	Aim     float64 `json:"aim"`
	Ours    float64 `json:"ours"`
	Theirs  float64 `json:"theirs"`
	Unit    string  `json:"unit"`
	Peer    string  `json:"peer"`
	Skipped string  `json:"skipped,omitempty"`
}

// bench is one benchmark: it works below dir, at a scale of 1 for the sizes of
// the performance page.
type bench struct {
	id  string
	run func(ctx context.Context, dir string, s settings) ([]figure, error)
}

type settings struct {
	scale   float64
	repeats int
	profile string // the folder for CPU profiles of our side; "" takes none
}

// profiled runs our side of a figure under the CPU profiler when asked to. It is
// a run of its own: the measured ones are never slowed by it.
func (s settings) profiled(name string, thing func() error) error {
	if s.profile == "" {
		return nil
	}
	if err := os.MkdirAll(s.profile, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(s.profile, name+".pprof"))
	if err != nil {
		return err
	}
	defer f.Close() // again, after an error
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	err = thing()
	pprof.StopCPUProfile()
	return errors.Join(err, f.Close())
}

// scaled gives a size at the scale, at least 1.
func (s settings) scaled(n int) int { return max(1, int(float64(n)*s.scale)) }

func main() {
	var s settings
	run := flag.String("run", "", "figures to measure, comma-separated (default: all)")
	out := flag.String("out", "build/bench.jsonl", "the file of JSON lines")
	dir := flag.String("dir", "build/bench", "the folder to work in")
	flag.Float64Var(&s.scale, "scale", 1, "shrink or grow the work")
	flag.IntVar(&s.repeats, "repeats", 3, "take the best of about that many runs of either side, in turn")
	flag.StringVar(&s.profile, "profile", "", "a folder for CPU profiles (P1, P5, P6, P8, P10, P11, P13)")
	flag.Parse()
	if err := measure(*run, *out, *dir, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(run, out, dir string, s settings) error {
	wanted := strings.FieldsFunc(run, func(r rune) bool { return r == ',' || r == ' ' })
	benches := []bench{{"P1", runP1}, {"P2", runP2}, {"P3", runP3}, {"P4", runP4}, {"P5", runP5}, {"P6", runP6}, {"P7", runP7}, {"P8", runP8}, {"P9", runP9}, {"P10", runP10}, {"P11", runP11}, {"P12", runP12}, {"P13", runP13}, {"P14", runP14}, {"P15", runP15}, {"WIDE", runWide}}
	for _, w := range wanted {
		if !slices.ContainsFunc(benches, func(b bench) bool { return b.id == w }) {
			return fmt.Errorf("no figure %s is measured yet", w)
		}
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	lines, err := os.Create(out)
	if err != nil {
		return err
	}
	defer lines.Close()
	fmt.Printf("%-4s %-42s %9s %8s %7s %7s %11s %11s  %s\n", "", "", "value", "cpu", "must", "aim", "ours", "theirs", "peer")
	for _, b := range benches {
		if len(wanted) > 0 && !slices.Contains(wanted, b.id) {
			continue
		}
		work, err := filepath.Abs(filepath.Join(dir, b.id))
		if err != nil {
			return err
		}
		if err := os.RemoveAll(work); err != nil {
			return err
		}
		if err := os.MkdirAll(work, 0o755); err != nil {
			return err
		}
		figures, err := b.run(context.Background(), work, s)
		if err != nil {
			return fmt.Errorf("%s: %w", b.id, err)
		}
		for _, f := range figures {
			f.ID = b.id
			print(f)
			if err := json.NewEncoder(lines).Encode(f); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(work); err != nil {
			return err
		}
	}
	return lines.Close()
}

func print(f figure) {
	if f.Skipped != "" {
		fmt.Printf("%-4s %-42s skipped: %s\n", f.ID, f.Case, f.Skipped)
		return
	}
	sign, cpu := "≥", "-"
	if f.Better == "lower" {
		sign = "≤"
	}
	if f.CPU != 0 {
		cpu = fmt.Sprintf("%.2f", f.CPU)
	}
	fmt.Printf("%-4s %-42s %9.2f %8s %s%6.2f %s%6.2f %8.3f %-2s %8.3f %-2s  %s\n",
		f.ID, f.Case, f.Value, cpu, sign, f.Must, sign, f.Aim, f.Ours, f.Unit, f.Theirs, f.Unit, f.Peer)
}
