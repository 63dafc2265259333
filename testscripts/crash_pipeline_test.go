package testscripts

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/events"
	"github.com/weir-data/weir/host/storage"
)

// wholePipeline writes a project with every kind of flow and dataset: several
// flows into one table, one of them once, a private table, a join of a stream
// with a table, a change feed, quarantine, and views over views.
func wholePipeline(t testing.TB, dir string) {
	t.Helper()
	put(t, dir, "weir.yaml", `name: whole
catalog: dev
schema: bronze
storage: ./lake
libraries:
  - glob: {include: sql/**}
`)
	put(t, dir, "sql/bronze.sql", `
CREATE OR REFRESH STREAMING TABLE orders
TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')
AS SELECT * FROM STREAM read_files('./landing/orders', format => 'json', maxFilesPerTrigger => 2, schemaHints => 'amount DECIMAL(18,2)');

CREATE OR REFRESH STREAMING TABLE products
AS SELECT * FROM STREAM read_files('./landing/products', format => 'csv', header => true, maxFilesPerTrigger => 1);
`)
	put(t, dir, "sql/silver.sql", `
CREATE OR REFRESH PRIVATE STREAMING TABLE silver.staged (
  CONSTRAINT known EXPECT (id % 7 <> 3) ON VIOLATION QUARANTINE,
  CONSTRAINT even EXPECT (id % 5 <> 4) ON VIOLATION DROP ROW
) AS SELECT id, amount, city FROM STREAM orders WITH (skipChangeCommits = true);

CREATE OR REFRESH STREAMING TABLE silver.named
AS SELECT s.id, s.amount, p.name FROM STREAM(silver.staged) AS s LEFT JOIN products AS p ON p.city = s.city;

CREATE OR REFRESH STREAMING TABLE silver.events (id BIGINT, kind STRING, amount DECIMAL(18,2));
CREATE FLOW sold AS INSERT INTO silver.events BY NAME SELECT id, amount, 'sold' AS kind FROM STREAM(silver.named);
CREATE FLOW returned AS INSERT INTO silver.events BY NAME
SELECT id, 'returned' AS kind FROM STREAM read_files('./landing/returns', format => 'json', maxFilesPerTrigger => 1, schema => 'id BIGINT');
CREATE FLOW before_us AS INSERT INTO ONCE silver.events BY NAME
SELECT id, 'old' AS kind FROM read_files('./landing/archive', format => 'json', schema => 'id BIGINT');

CREATE OR REFRESH STREAMING TABLE silver.history
AS SELECT id, city, _change_type FROM STREAM orders WITH (readChangeFeed = true) WHERE _change_type <> 'update_preimage';
`)
	put(t, dir, "sql/gold.sql", `
CREATE TEMPORARY VIEW counted AS SELECT kind, count(*) AS n, sum(amount) AS amount FROM silver.events GROUP BY kind;
CREATE OR REFRESH MATERIALIZED VIEW gold.kinds AS SELECT * FROM counted;
CREATE OR REFRESH MATERIALIZED VIEW gold.cities (
  CONSTRAINT sells EXPECT (n > 12) ON VIOLATION QUARANTINE
) AS SELECT name, count(*) AS n, max(id) AS newest FROM silver.named GROUP BY name;
CREATE OR REFRESH MATERIALIZED VIEW gold.best AS SELECT name, n FROM gold.cities ORDER BY n DESC, name LIMIT 2;
`)
	for i := range 3 {
		put(t, dir, fmt.Sprintf("landing/products/%d.csv", i), fmt.Sprintf("city,name\nc%d,City %d\n", i, i))
		put(t, dir, fmt.Sprintf("landing/archive/%d.json", i), fmt.Sprintf(`{"id":%d}`+"\n", -1-i))
	}
	landOrders(t, dir, 0, 6)
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func landOrders(t testing.TB, dir string, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		var b strings.Builder
		for r := range 5 {
			id := i*5 + r
			fmt.Fprintf(&b, `{"id":%d,"amount":%d.25,"city":"c%d"}`+"\n", id, id%20, id%3)
		}
		put(t, dir, fmt.Sprintf("landing/orders/%03d.json", i), b.String())
		put(t, dir, fmt.Sprintf("landing/returns/%03d.json", i), fmt.Sprintf(`{"id":%d}`+"\n", i*5))
	}
}

// wholeUpdate is a kind of update that is killed: what comes before it, and its command.
type wholeUpdate struct {
	name    string
	prepare func(t testing.TB, dir string)
	command []string
}

var wholeUpdates = []wholeUpdate{
	{"plain", func(t testing.TB, dir string) {
		mustRun(t, dir, "run")
		mustRun(t, dir, "delta", "update", "orders", "--set", "city = 'c9'", "--where", "id < 4")
		landOrders(t, dir, 6, 4)
	}, []string{"run"}},
	{"full refresh", func(t testing.TB, dir string) {
		mustRun(t, dir, "run")
		landOrders(t, dir, 6, 2)
		if err := os.Remove(filepath.Join(dir, "landing/orders/002.json")); err != nil {
			t.Fatal(err)
		}
	}, []string{"run", "--full-refresh-all", "--yes", "--accept-loss"}},
	{"view refresh", func(t testing.TB, dir string) {
		mustRun(t, dir, "run")
		landOrders(t, dir, 6, 2)
		mustRun(t, dir, "run", "--refresh", "orders,silver.staged,silver.named,silver.events")
	}, []string{"run", "--refresh", "gold.kinds,gold.cities,gold.best"}},
}

// TestKillsOfWholePipelines kills updates of a pipeline at random instants,
// several times over before one may end: the tables are those of an undisturbed
// run, and the event log tells of every update without a gap or a torn event.
// WEIR_SOAK_KILLS sets how many kills; WEIR_SEED repeats a run.
//
// covers A115 A147 A154 B5
func TestKillsOfWholePipelines(t *testing.T) {
	const perRound = 3
	kills := envInt(t, "WEIR_SOAK_KILLS", 4*perRound)
	seed := uint64(envInt(t, "WEIR_SEED", int(time.Now().UnixNano()&0xffffffff)))
	t.Logf("WEIR_SEED=%d", seed)
	rounds := max(1, (kills+perRound*len(wholeUpdates)-1)/(perRound*len(wholeUpdates)))
	for kind, u := range wholeUpdates {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			wholePipeline(t, dir)
			u.prepare(t, dir)
			before := readState(t, dir)
			start := time.Now()
			mustRun(t, dir, u.command...)
			whole := time.Since(start)
			want := readState(t, dir)
			if want.rows() == 0 || want.equal(before) {
				t.Fatalf("the update proves nothing: %d rows", want.rows())
			}
			checkEvents(t, dir)
			dead := 0
			for round := range rounds {
				random := rand.New(rand.NewPCG(seed, uint64(kind<<32|round)))
				dir := t.TempDir()
				wholePipeline(t, dir)
				u.prepare(t, dir)
				var instants []string
				for i := range perRound {
					window := int64(whole)
					if i == 0 {
						window /= 2 // the update that was measured may have been a slow one, and one must die
					}
					instant := time.Duration(random.Int64N(window))
					instants = append(instants, instant.String())
					cmd, out := weirProcess(t, dir, nil, u.command...)
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					timer := time.AfterFunc(instant, func() { _ = cmd.Process.Kill() })
					if killed(t, cmd.Wait(), out) {
						dead++
					}
					timer.Stop()
				}
				mustRun(t, dir, u.command...)
				when := fmt.Sprintf("%s after kills at %s (seed %d)", u.name, strings.Join(instants, ", "), seed)
				want.mustEqual(t, readState(t, dir), when)
				checkEvents(t, dir)
				if t.Failed() {
					t.Log(when)
				}
			}
			if dead == 0 {
				t.Error("no update was killed")
			}
		})
	}
}

// checkEvents holds the event log of a project to its rules: events are
// numbered without gaps, in the pipeline and in each update, each is whole, and
// every update that began has ended, if only by the word of the next one.
func checkEvents(t testing.TB, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "lake", "_weir", "*", "event_log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	store, err := storage.OpenDir(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	list, err := events.Read(t.Context(), delta.Open(store), events.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	ids, numbers, ends := map[string]bool{}, map[string]int64{}, map[string]int{}
	for i, e := range list {
		if e.Sequence.Control != int64(i)+1 {
			t.Fatalf("event %d is number %d of the pipeline", i+1, e.Sequence.Control)
		}
		by := e.Sequence.Instance
		if numbers[by]++; e.Sequence.Number != numbers[by] {
			t.Errorf("event %d is number %d of its update, not %d", i+1, e.Sequence.Number, numbers[by])
		}
		if e.ID == "" || ids[e.ID] || e.Type == "" || e.Level == "" || e.Timestamp.IsZero() || e.Origin.PipelineID == "" || e.Origin.UpdateID == "" {
			t.Errorf("event %d is not whole: %+v", i+1, e)
		}
		ids[e.ID] = true
		switch e.Type {
		case events.CreateUpdate:
			if _, again := ends[e.Origin.UpdateID]; again {
				t.Errorf("update %s is created twice", e.Origin.UpdateID)
			}
			ends[e.Origin.UpdateID] = 0
		case events.UpdateProgress:
			details, ok := events.DetailsOf[events.StateDetails](&list[i])
			if !ok {
				t.Errorf("event %d has no readable details", i+1)
			}
			switch details.State {
			case "COMPLETED", "FAILED", "CANCELED":
				ends[e.Origin.UpdateID]++
			}
		}
	}
	for id, n := range ends {
		if n != 1 {
			text, _ := json.Marshal(list)
			t.Errorf("update %s ended %d times\n%s", id, n, text)
		}
	}
}
