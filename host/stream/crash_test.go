package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

// world is the obvious, slow model of a flow: it remembers every document that
// was dropped, and from that says what tables and file states must be.
type world struct {
	docs  map[string][]map[string]any // by file
	drops int
}

func newWorld() *world { return &world{docs: map[string][]map[string]any{}} }

// drop lands a file of n documents, sometimes with an old name or time, with
// bad ids and new columns.
func (w *world) drop(l *lake, r *rand.Rand, n int) error {
	var text strings.Builder
	var docs []map[string]any
	for range n {
		w.drops++
		doc := map[string]any{"id": w.drops + 100}
		switch r.IntN(8) {
		case 0:
			doc["id"] = -w.drops
		case 1:
			doc["id"] = 13
			doc["copy"] = strconv.Itoa(w.drops)
		}
		for range r.IntN(3) {
			doc["c"+strconv.Itoa(r.IntN(6))] = "v" + strconv.Itoa(r.IntN(100))
		}
		line, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		text.Write(line)
		text.WriteByte('\n')
		docs = append(docs, doc)
	}
	name := fmt.Sprintf("dt=%d/%c%d.json", r.IntN(3), 'a'+rune(r.IntN(26)), w.drops)
	if w.docs[name] != nil {
		return nil
	}
	w.docs[name] = docs
	return l.drop(name, text.String(), time.Duration(r.IntN(1000))*time.Hour)
}

// check compares tables, file states and the figures of the commit log.
func (w *world) check(l *lake, f *Flow) error {
	var kept, refused, states []string
	rows := int64(0)
	for name, docs := range w.docs {
		size := 0
		for _, doc := range docs {
			line, _ := json.Marshal(doc)
			size += len(line) + 1
			rows++
			id := doc["id"].(int)
			if id < 0 {
				refused = append(refused, fmt.Sprintf("%d %s", id, filepath.Join(l.dir, "landing", name)))
				continue
			}
			if id == 13 {
				continue
			}
			row := map[string]any{"dt": name[3:4]}
			for k, v := range doc {
				row[k] = v
			}
			line, _ = json.Marshal(row)
			kept = append(kept, string(line))
		}
		states = append(states, fmt.Sprintf("%s INGESTED %d", name, size))
	}
	slices.Sort(kept)
	slices.Sort(refused)
	slices.Sort(states)
	if l.counted {
		if err := l.checkCount(f, rows); err != nil {
			return err
		}
	}
	return errors.Join(w.checkRows(l, kept), w.checkRefused(l, refused), checkStates(l, f, states), checkFigures(l, f, rows, int64(len(kept))))
}

func (w *world) checkRows(l *lake, want []string) error {
	got, err := l.rows(bronzeName)
	if err != nil {
		return err
	}
	// The partition column may be inferred as a number.
	for i := range got {
		for d := range 3 {
			got[i] = strings.Replace(got[i], fmt.Sprintf(`"dt":%d`, d), fmt.Sprintf(`"dt":"%d"`, d), 1)
		}
	}
	slices.Sort(got)
	return differ("rows", got, want)
}

func (w *world) checkRefused(l *lake, want []string) error {
	raw, err := l.rows(bronzeName + "_quarantine")
	if err != nil {
		return err
	}
	var got []string
	for _, text := range raw {
		var q struct {
			Row    string `json:"_row"`
			Source string `json:"_source"`
		}
		var row struct{ ID int }
		if err := errors.Join(json.Unmarshal([]byte(text), &q), json.Unmarshal([]byte(q.Row), &row)); err != nil {
			return err
		}
		got = append(got, fmt.Sprintf("%d %s", row.ID, q.Source[:strings.LastIndexByte(q.Source, ':')]))
	}
	slices.Sort(got)
	return differ("quarantine", got, want)
}

func checkStates(l *lake, f *Flow, want []string) error {
	got, err := l.states(f)
	if err != nil {
		return err
	}
	return differ("states", got, want)
}

// checkFigures adds up the commit log: a batch that was recovered after a
// crash has its figures, too.
func checkFigures(l *lake, f *Flow, rows, kept int64) error {
	ctx := context.Background()
	flow := storage.Sub(l.store, "_weir/dwh/checkpoints/"+f.Dataset+"/"+f.Name)
	gen, ok, err := newestGeneration(ctx, flow)
	if err != nil || !ok {
		return err
	}
	ck, err := loadCheckpoint(ctx, flow, gen)
	if err != nil {
		return err
	}
	var sum Metrics
	for n := int64(0); n <= ck.committed; n++ {
		c, err := ck.commit(ctx, n)
		if err != nil {
			return err
		}
		sum.add(c.Metrics)
	}
	if sum.InputRows != rows || sum.OutputRows != kept {
		return fmt.Errorf("the commit log counts %d rows in and %d out, want %d and %d", sum.InputRows, sum.OutputRows, rows, kept)
	}
	return nil
}

func differ(what string, got, want []string) error {
	if slices.Equal(got, want) {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: got %d, want %d", what, len(got), len(want))
	for _, g := range got {
		if !slices.Contains(want, g) {
			b.WriteString("\n  not wanted: " + g)
		}
	}
	for _, x := range want {
		if !slices.Contains(got, x) {
			b.WriteString("\n  missing: " + x)
		}
	}
	return errors.New(b.String())
}

// scenario lands the same files in every lake: seven of them, three batches,
// one new column.
func scenario(l *lake) (*world, error) {
	w, r := newWorld(), rand.New(rand.NewPCG(11, 12))
	for range 7 {
		if err := w.drop(l, r, 3); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Every storage operation of a run goes wrong once: the process dies before or
// after it, or the operation fails or loses its answer. The next run ends
// where an undisturbed one ends.
func TestEveryStorageOperationMayFail(t *testing.T) {
	for _, refresh := range []bool{false, true} {
		for mode := crashBefore; mode <= failAfter; mode++ {
			t.Run(fmt.Sprintf("full refresh %v, mode %d", refresh, mode), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k += stride(13) {
					if !operationFails(t, k, mode, refresh) {
						if k < 40 {
							t.Fatalf("only %d operations", k)
						}
						return
					}
				}
			})
		}
	}
}

// stride is how far an enumeration steps: n under the race detector.
func stride(n int) int {
	if raceDetector {
		return n
	}
	return 1
}

// operationFails lets operation k fail, and reports whether there is one.
func operationFails(t *testing.T, k int, mode faultMode, refresh bool) bool {
	t.Helper()
	l := newLake(t)
	l.counted = true
	defer func() {
		if !t.Failed() {
			_ = os.RemoveAll(l.dir) // thousands of them would fill the disk
		}
	}()
	w, err := scenario(l)
	if err != nil {
		t.Fatal(err)
	}
	if refresh {
		mustRun(t, l.mustBronze(t))
	}
	f := &faulty{k: k, mode: mode}
	l.wrap = f.wrap
	flow := l.mustBronze(t)
	flow.FullRefresh = refresh
	_, err = Run(context.Background(), flow, nil)
	if err != nil && (!f.hit || fault.CodeOf(err) == "") {
		t.Fatalf("operation %d: %v", k, err)
	}
	l.wrap = nil
	started := newestOf(t, l) > 0
	again := l.mustBronze(t)
	// A refresh that did not get as far as its generation is asked for again.
	again.FullRefresh = refresh && !started
	if _, err := Run(context.Background(), again, nil); err != nil {
		t.Fatalf("operation %d, the run after: %v", k, err)
	}
	if err := w.check(l, again); err != nil {
		t.Fatalf("operation %d: %v", k, err)
	}
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 0 {
		t.Fatalf("operation %d: the third run did something: %+v", k, res)
	}
	return f.hit
}

func newestOf(t *testing.T, l *lake) int {
	t.Helper()
	gen, ok, err := newestGeneration(context.Background(), storage.Sub(l.store, "_weir/dwh/checkpoints/"+bronzeName+"/orders"))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return -1
	}
	return gen.Generation
}

// covers A1 A29 A48: a random history of arrivals, crashes and full refreshes
// ends as the model says. WEIR_SOAK=n runs n histories.
func TestRandomHistoriesEndAsTheModelSays(t *testing.T) {
	histories := 40
	if n, err := strconv.Atoi(os.Getenv("WEIR_SOAK")); err == nil {
		histories = n
	}
	for seed := 0; seed < histories; seed += stride(5) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			history(t, rand.New(rand.NewPCG(uint64(seed), 99)))
		})
	}
}

func history(t *testing.T, r *rand.Rand) {
	l, w := newLake(t), newWorld()
	l.options["cloudFiles.maxFilesPerTrigger"] = strconv.Itoa(1 + r.IntN(3))
	l.counted = r.IntN(2) == 0
	taskBytes := int64(r.IntN(2) * 100)
	flow := func() *Flow {
		f := l.mustBronze(t)
		f.TaskBytes, f.Parallel = taskBytes, 1+r.IntN(2)
		f.MaxRetries = 2
		return f
	}
	if err := w.drop(l, r, 1+r.IntN(4)); err != nil {
		t.Fatal(err)
	}
	for range 4 + r.IntN(8) {
		for range r.IntN(4) {
			if err := w.drop(l, r, 1+r.IntN(4)); err != nil {
				t.Fatal(err)
			}
		}
		f := &faulty{k: 1 + r.IntN(150), mode: faultMode(r.IntN(4))}
		if r.IntN(3) == 0 {
			f.k = 0 // no fault
		}
		l.wrap = f.wrap
		fl := flow()
		fl.FullRefresh = r.IntN(5) == 0
		_, err := Run(context.Background(), fl, nil)
		if err != nil && !f.hit {
			t.Fatal(err)
		}
		l.wrap = nil
	}
	mustRun(t, flow())
	if err := w.check(l, flow()); err != nil {
		t.Fatal(err)
	}
}

const childEnv = "WEIR_STREAM_TEST_CHILD"

// child runs the flow once in a process that a failpoint kills.
func child() error {
	if err := failpoint.ArmFromEnv(); err != nil {
		return err
	}
	dir, refresh, _ := strings.Cut(os.Getenv(childEnv), "|")
	l, err := openLake(dir)
	if err != nil {
		return err
	}
	l.options["cloudFiles.maxFilesPerTrigger"], l.counted = "1", true
	f, err := l.bronze()
	if err != nil {
		return err
	}
	if refresh == "view" {
		_, err = Complete(context.Background(), l.view(), nil)
		return err
	}
	if refresh == "handler" {
		if f, err = l.handled(newestOfBatch{}); err != nil {
			return err
		}
	}
	f.FullRefresh = refresh == "full"
	_, err = Run(context.Background(), f, nil)
	return err
}

// covers A48: SIGKILL at every failpoint of the loop, at its first and at a
// later hit, and during a full refresh.
func TestKilledAtEveryFailpoint(t *testing.T) {
	for _, name := range failpoint.Names() {
		if strings.HasPrefix(name, "failpoint.") || name == outputCommitted { // the latter is a handler's, see TestAHandlerKilledBetweenOutputs
			continue
		}
		if strings.HasPrefix(name, "stream.reset_") { // no flow's, see TestEveryStorageOperationOfAResetMayFail
			continue
		}
		for _, refresh := range []string{"", "full"} {
			t.Run(name+" "+refresh, func(t *testing.T) {
				t.Parallel()
				hit := false
				for _, count := range []int{1, 2, 9}[:3/stride(3)] {
					hit = killedAt(t, name, count, refresh) || hit
				}
				if !hit && !raceDetector {
					t.Fatal("no run came by")
				}
			})
		}
	}
}

// outputCommitted is the failpoint between two outputs of a handler.
const outputCommitted = "stream.output_committed"

// killedInChild runs the flow in a process that the failpoint kills at its
// count-th hit, and reports whether it got there.
func killedInChild(t *testing.T, l *lake, mode, name string, count int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+l.dir+"|"+mode, failpoint.Env+"="+name+"#"+strconv.Itoa(count))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	killed := false
	if errors.As(err, &exit) {
		ws, ok := exit.Sys().(syscall.WaitStatus)
		killed = ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
	}
	if err != nil && !killed {
		t.Fatalf("%s#%d: %v\n%s", name, count, err, out)
	}
	return killed
}

func killedAt(t *testing.T, name string, count int, refresh string) bool {
	t.Helper()
	l, r := newLake(t), rand.New(rand.NewPCG(21, 22))
	l.options["cloudFiles.maxFilesPerTrigger"], l.counted = "1", true
	w := newWorld()
	for range 12 {
		if err := w.drop(l, r, 2); err != nil {
			t.Fatal(err)
		}
	}
	if refresh != "" {
		mustRun(t, l.mustBronze(t))
	}
	killed := killedInChild(t, l, refresh, name, count)
	f := l.mustBronze(t)
	mustRun(t, f)
	if err := w.check(l, f); err != nil {
		t.Fatalf("%s#%d: %v", name, count, err)
	}
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 0 {
		t.Fatalf("%s#%d: %+v", name, count, res)
	}
	return killed
}

// A disk that is full stops a run with the name of what is wrong, whatever it
// was writing; with room again the next run ends as the model says.
func TestAFullDiskLosesNothing(t *testing.T) {
	for _, rule := range []faultstore.Rule{
		{Op: faultstore.OpPutIfAbsent, Skip: 4},
		{Op: faultstore.OpPutIfAbsent, Name: "dev/bronze/orders/_delta_log/*"},
		{Op: faultstore.OpWrite},
		{Op: faultstore.OpCommit, Skip: 1},
		{Op: faultstore.OpPutIfAbsent, Name: "_weir/dwh/checkpoints/*/*/0/commits/*"},
	} {
		t.Run(fmt.Sprint(rule.Op, rule.Name), func(t *testing.T) {
			l := newLake(t)
			w, err := scenario(l)
			if err != nil {
				t.Fatal(err)
			}
			rule.Effect = faultstore.Full()
			l.wrap = func(s storage.Store) storage.Store { return faultstore.New(s, rule) }
			if _, err := Run(context.Background(), l.mustBronze(t), nil); !errors.Is(err, storage.ErrFull) || fault.CodeOf(err) == "FLOW_FAILED" {
				t.Fatal(err)
			}
			l.wrap = nil
			f := l.mustBronze(t)
			mustRun(t, f)
			if err := w.check(l, f); err != nil {
				t.Fatal(err)
			}
		})
	}
}
