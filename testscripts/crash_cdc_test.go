package testscripts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/failpoint"
)

// cdcProject writes a pipeline of AUTO CDC flows: SCD type 1 with truncates,
// type 2, two flows whose NULLs say nothing into one target, and snapshots that
// a plugin gives.
func cdcProject(t testing.TB, dir string) {
	t.Helper()
	put(t, dir, "weir.yaml", `name: cdc
catalog: dev
schema: shop
storage: ./lake
libraries: [{glob: {include: sql/**}}]
plugins:
  - path: `+filepath.Join(pluginDir(t), "extracts.wasm")+`
    grants: {conf: [extracts.*]}
`)
	put(t, dir, "sql/shop.sql", `
CREATE TEMPORARY VIEW changes AS
SELECT * FROM STREAM read_files('./landing/changes', format => 'json', maxFilesPerTrigger => 1, schema => 'id BIGINT, name STRING, city STRING, op STRING, seq BIGINT');
CREATE TEMPORARY VIEW more AS
SELECT * FROM STREAM read_files('./landing/more', format => 'json', maxFilesPerTrigger => 2, schema => 'id BIGINT, name STRING, city STRING, op STRING, seq BIGINT');

CREATE STREAMING TABLE bronze.extract AS
SELECT * FROM STREAM read_files('./landing/extracts', format => 'json', schema => 'day STRING, id BIGINT, name STRING, segment STRING');

CREATE STREAMING TABLE newest;
CREATE FLOW newest_of AS AUTO CDC INTO newest FROM STREAM(changes) KEYS (id)
APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;

CREATE STREAMING TABLE history TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
CREATE FLOW history_of AS AUTO CDC INTO history FROM STREAM(changes) KEYS (id)
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (city);

CREATE STREAMING TABLE both;
CREATE FLOW first_part AS AUTO CDC INTO both FROM STREAM(changes) KEYS (id) IGNORE NULL UPDATES
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;
CREATE FLOW second_part AS AUTO CDC INTO both FROM STREAM(more) KEYS (id) IGNORE NULL UPDATES
APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;
`)
	landChanges(t, dir, 0, 4)
}

// landChanges lands files of changes, the same at each call: keys that come
// again and again in a random order, removals, NULLs and a few truncates.
func landChanges(t testing.TB, dir string, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		var extract strings.Builder
		for id := range 6 {
			if (id+i)%4 != 0 {
				fmt.Fprintf(&extract, `{"day":"2026-07-%02d","id":%d,"name":"n%d","segment":"s%d"}`+"\n", i+1, id, id*i%3, (id+i)/3)
			}
		}
		put(t, dir, fmt.Sprintf("landing/extracts/%03d.json", i), extract.String())
		for part, folder := range []string{"changes", "more"} {
			random := rand.New(rand.NewPCG(uint64(part), uint64(i))) //nolint:gosec // small numbers
			var b strings.Builder
			for r := range 12 {
				// No sequence comes twice, and they overlap from file to file.
				seq := 2*(i*8+random.IntN(16)*16+r) + part
				id, name, city, op := random.IntN(9), fmt.Sprintf(`"n%d"`, random.IntN(2)), fmt.Sprintf(`"c%d"`, seq), "U"
				switch random.IntN(6) {
				case 0:
					op = "D"
				case 1:
					name = "null"
				}
				if r == 11 && i%3 == 2 {
					op = "T"
					seq = 2 * i * 12
				}
				if op == "T" && part == 1 {
					continue
				}
				fmt.Fprintf(&b, `{"id":%d,"name":%s,"city":%s,"op":%q,"seq":%d}`+"\n", id, name, city, op, seq*1000+r*10+i%10)
			}
			put(t, dir, fmt.Sprintf("landing/%s/%03d.json", folder, i), b.String())
		}
	}
}

// cdcUpdates are the updates that are killed: the first of all, one more, and a
// full refresh.
var cdcUpdates = []wholeUpdate{
	{"first", func(testing.TB, string) {}, []string{"run"}},
	{"next", func(t testing.TB, dir string) {
		mustRun(t, dir, "run")
		landChanges(t, dir, 4, 3)
	}, []string{"run"}},
	{"full refresh", func(t testing.TB, dir string) {
		mustRun(t, dir, "run")
		landChanges(t, dir, 4, 3)
		if err := os.Remove(filepath.Join(dir, "landing/changes/001.json")); err != nil {
			t.Fatal(err)
		}
	}, []string{"run", "--full-refresh-all", "--yes", "--accept-loss"}},
}

// prepared makes a project ready for the update, with a cache of its own.
func (u *wholeUpdate) prepared(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	cdcProject(t, dir)
	u.prepare(t, dir)
	return dir
}

// killedAtRandom kills the update at random instants, runs it to its end, and compares.
// Each time the caches are gone with a chance of one in two.
func (u *wholeUpdate) killedAtRandom(t *testing.T, want *state, random *rand.Rand, whole time.Duration, perRound int) (dead int) {
	t.Helper()
	dir := u.prepared(t)
	cache := func() []string {
		if random.IntN(2) == 0 {
			return []string{"WEIR_CACHE_DIR=" + t.TempDir()}
		}
		return nil
	}
	var instants []string
	for i := range perRound {
		window := int64(whole)
		if i == 0 {
			window /= 2 // the update that was measured may have been a slow one, and one must die
		}
		instant := time.Duration(random.Int64N(window))
		instants = append(instants, instant.String())
		cmd, out := weirProcess(t, dir, cache(), u.command...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(instant, func() { _ = cmd.Process.Kill() })
		if killed(t, cmd.Wait(), out) {
			dead++
		}
		timer.Stop()
	}
	cmd, out := weirProcess(t, dir, cache(), u.command...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("after kills at %s: %v\n%s", strings.Join(instants, ", "), err, out)
	}
	want.mustEqual(t, readState(t, dir), u.name+" after kills at "+strings.Join(instants, ", "))
	checkEvents(t, dir)
	return dead
}

// undisturbed gives what the tables are when nothing is killed, and how long that takes.
func (u *wholeUpdate) undisturbed(t *testing.T) (*state, time.Duration) {
	t.Helper()
	dir := u.prepared(t)
	before := readState(t, dir)
	start := time.Now()
	mustRun(t, dir, u.command...)
	whole := time.Since(start)
	want := readState(t, dir)
	if want.rows() == 0 || want.equal(before) {
		t.Fatalf("%s proves nothing: %d rows", u.name, want.rows())
	}
	return want, whole
}

// Updates of AUTO CDC are killed at random instants, and lose their caches: the
// tables are those of an undisturbed run, and the event log is whole.
// WEIR_SOAK_KILLS sets how many kills; WEIR_SEED repeats a run. covers B2
func TestKillsOfChanges(t *testing.T) {
	const perRound = 2
	kills := envInt(t, "WEIR_SOAK_KILLS", 0)
	seed := uint64(envInt(t, "WEIR_SEED", int(time.Now().UnixNano()&0xffffffff)))
	t.Logf("WEIR_SEED=%d", seed)
	rounds := max(1, kills/(perRound*len(cdcUpdates)))
	for kind, u := range cdcUpdates {
		if kills == 0 && kind == 0 {
			continue // the first update is a full refresh in small
		}
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			want, whole := u.undisturbed(t)
			dead := 0
			for round := range rounds {
				random := rand.New(rand.NewPCG(seed, uint64(kind<<32|round)))
				dead += u.killedAtRandom(t, want, random, whole, perRound)
			}
			if dead == 0 {
				t.Error("no update was killed")
			}
		})
	}
}

// ofChanges tells whether only a flow of changes passes a failpoint.
func ofChanges(name string) bool {
	return strings.HasPrefix(name, "cdc.") || strings.HasPrefix(name, "keyindex.")
}

// Updates of AUTO CDC are killed at each of its failpoints.
func TestChangesKilledAtEveryFailpoint(t *testing.T) {
	updates := cdcUpdates[1:2]
	if os.Getenv("WEIR_SOAK_KILLS") != "" {
		updates = cdcUpdates
	}
	wants := make([]*state, len(updates))
	for i := range updates {
		wants[i], _ = updates[i].undisturbed(t)
	}
	for _, name := range failpoint.Names() {
		if !ofChanges(name) {
			continue // those of every flow are TestKillAtEveryFailpoint's
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hit := false
			for i, u := range updates {
				dir := u.prepared(t)
				env := failpoint.Env + "=" + name + "#" + strconv.Itoa(1+i)
				cmd, out := weirProcess(t, dir, []string{env}, u.command...)
				hit = killed(t, cmd.Run(), out) || hit
				mustRun(t, dir, u.command...)
				wants[i].mustEqual(t, readState(t, dir), u.name+" after a kill at "+env)
			}
			if !hit {
				t.Errorf("no update passes the failpoint %s: extend cdcProject", name)
			}
		})
	}
}
