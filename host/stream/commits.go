package stream

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/weir-data/weir/host/expect"
)

// outcome is what a batch did. It travels in the target's own commit, so that
// a run that finds the commit without the commit entry can write the same entry.
type outcome struct {
	SchemaVersion *int         `json:"schema_version,omitempty"`
	Metrics       Metrics      `json:"metrics"`
	Expectations  []ruleCounts `json:"expectations,omitempty"`
	// Files are those of the batch that were not simply read.
	Files []fileOutcome `json:"files,omitempty"`
	// States are those that steps have after the batch, whichever batch wrote them.
	States map[string]stateRef `json:"states,omitempty"`

	unknown bool // the commit was found without its outcome
}

type ruleCounts struct {
	Name string `json:"name"`
	// Dataset is the view that has the rule, absent for the target.
	Dataset string `json:"dataset,omitempty"`
	Passed  int64  `json:"passed_records"`
	Failed  int64  `json:"failed_records"`
}

// commitEntry is entry N of the commit log: batch N is in the target.
type commitEntry struct {
	Format        int       `json:"format"`
	Batch         int64     `json:"batch"`
	Timestamp     time.Time `json:"timestamp"`
	UpdateID      string    `json:"update_id"`
	TableID       string    `json:"table_id"`
	TargetVersion int64     `json:"target_version"`
	outcome
}

// outcomeKey is where a target's commit carries the outcome, among the
// parameters of the operation, as JSON in a string.
const outcomeKey = "weir.batch"

func (o outcome) encode() (string, error) {
	text, err := json.Marshal(o)
	return string(text), err
}

func decodeOutcome(text any) (o outcome, ok bool) {
	s, ok := text.(string)
	if !ok {
		return o, false
	}
	if json.Unmarshal([]byte(s), &o) != nil {
		// Other writers may encode the strings of parameters once more.
		var inner string
		if json.Unmarshal([]byte(s), &inner) != nil || json.Unmarshal([]byte(inner), &o) != nil {
			return outcome{}, false
		}
	}
	return o, true
}

// add sums the figures of m into t.
func (t *Metrics) add(m Metrics) {
	t.InputFiles += m.InputFiles
	t.InputBytes += m.InputBytes
	t.InputRows += m.InputRows
	t.OutputRows += m.OutputRows
	t.DroppedRows += m.DroppedRows
	t.QuarantinedRows += m.QuarantinedRows
	t.SkippedRows += m.SkippedRows
	t.RowErrors += m.RowErrors
	t.RescuedRows += m.RescuedRows
	t.MalformedRows += m.MalformedRows
	t.DroppedMalformed += m.DroppedMalformed
	t.LostValues += m.LostValues
	t.OldImages += m.OldImages
	t.Applied.Add(m.Applied)
	t.OutputFiles += m.OutputFiles
	t.OutputBytes += m.OutputBytes
	t.Fuel += m.Fuel
	t.GuestTime += m.GuestTime
	for name, v := range m.User {
		if t.User == nil {
			t.User = map[string]float64{}
		}
		t.User[name] += v
	}
}

// addRules sums the counts of rules; both lists name the same rules in the
// same order, unless the rules changed between two updates.
func addRules(sum []expect.RuleCounts, more []expect.RuleCounts) []expect.RuleCounts {
	for _, m := range more {
		i := slices.IndexFunc(sum, func(c expect.RuleCounts) bool { return c.Name == m.Name && c.Dataset == m.Dataset })
		if i < 0 {
			sum = append(sum, m)
			continue
		}
		sum[i].Passed += m.Passed
		sum[i].Failed += m.Failed
	}
	return sum
}

func ruleRecords(counts []expect.RuleCounts) []ruleCounts {
	var out []ruleCounts
	for _, c := range counts {
		out = append(out, ruleCounts{c.Name, c.Dataset, c.Passed, c.Failed})
	}
	return out
}

func (o outcome) rules() []expect.RuleCounts {
	var out []expect.RuleCounts
	for _, c := range o.Expectations {
		out = append(out, expect.RuleCounts{Name: c.Name, Dataset: c.Dataset, Passed: c.Passed, Failed: c.Failed})
	}
	return out
}

// stateOf gives the outcome of each file that was not simply read.
func (o outcome) states() map[string]IngestionState {
	m := make(map[string]IngestionState, len(o.Files))
	for _, f := range o.Files {
		m[f.Path] = f.State
	}
	return m
}

func sortOutcomes(files []fileOutcome) {
	slices.SortFunc(files, func(a, b fileOutcome) int { return strings.Compare(a.Path, b.Path) })
}
