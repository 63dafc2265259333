//go:build !wasip1

package weirtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-data/weir/sdk/go"
)

func init() { weir.Module("under_test", "1", pipeline) }

func pipeline() {
	one := weir.ReadStream("one")
	weir.TemporaryView("aligned", one.Columns("v"), aligned, weir.RowAligned(), weir.Passthrough("k AS key"), weir.Output(weir.Col("w", "bigint")))
	weir.TemporaryView("learned", one, learned)
	weir.TemporaryView("lazy", one, func(*weir.Call) error { return nil })
	weir.TemporaryView("closing", one, func(c *weir.Call) error { c.Input(0).Close(); return nil })
	weir.TemporaryView("too_wide", one, tooWide, weir.Output(weir.Col("d", "decimal(3,1)")))
	weir.TemporaryView("too_short", one.Columns(), tooShort, weir.RowAligned(), weir.Output(weir.Col("w", "bigint")))
	weir.TemporaryView("lower_code", one, lowerCode)
	weir.TemporaryView("failing", one, func(*weir.Call) error { return errors.New("[NO] as asked") })
	weir.TemporaryView("telling", one, telling, weir.UsesConf("own.*"))
	weir.MaterializedView("asked", weir.Read("one"), asked, weir.Query(), weir.Output(weir.Col("n", "bigint")))
	weir.StreamingTable("counting", one, counting, weir.Stateful())
}

func aligned(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		b := in.Batch()
		v := b.Column("v").Int64()
		for i := range b.Len() {
			if v.At(i) < 0 {
				b.RowError(i, "NEGATIVE", "below zero")
				b.RowError(i, "SECOND", "does not count")
			}
			out.Column("w").Int64().Append(v.At(i) * 2)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

func asked(c *weir.Call) error {
	in, err := c.Query("SELECT n FROM one WHERE n > ? AND d < ? AND s = ? AND b = ? AND x IS NOT DISTINCT FROM ?", 1, weir.DateOf(2026, 1, 31), `a"b`, true, nil)
	if err != nil {
		return err
	}
	for in.Next() {
		for i := range in.Batch().Len() {
			c.Output().Column("n").Int64().Append(in.Batch().Column("n").Int64().At(i))
		}
	}
	return in.Err()
}

func learned(c *weir.Call) error {
	in, out := c.Input(0), c.Output()
	for in.Next() {
		for i := range in.Batch().Len() {
			out.Column("n").Int64().Append(in.Batch().Start() + int64(i))
		}
	}
	return in.Err()
}

func tooWide(c *weir.Call) error {
	c.Input(0).Close()
	c.Output().Column("d").Decimal128(3, 1).Append(weir.DecimalFromInt64(1000))
	return nil
}

func tooShort(c *weir.Call) error { c.Input(0).Close(); return nil }

func lowerCode(c *weir.Call) error {
	in := c.Input(0)
	for in.Next() {
		in.Batch().RowError(0, "negative", "")
	}
	return in.Err()
}

func telling(c *weir.Call) error {
	c.Input(0).Close()
	c.Metric("m", 1.5)
	c.Metric("m", 2)
	own, _ := c.Conf("own.key")
	c.Log(weir.LogWarn, fmt.Sprintf("%s %s %s %d", own, c.ConfOr("other.key", "unset"), c.Context().Flow, c.Context().BatchTimestamp))
	return nil
}

func counting(c *weir.Call) error {
	c.Input(0).Close()
	c.Output().Column("state").String().Append(string(c.State()))
	return c.SetState(append(c.State(), '+'))
}

var three = Table("k string, v bigint", Row{"a", 1}, Row{"b", -1}, Row{"c", 3})

func TestRunPlaysTheHost(t *testing.T) {
	m := Load(t, nil)
	for _, size := range []int{1, 2, 3} {
		got := m.Run("aligned", three.Batches(size))
		got.Equal(t, Row{"a", int64(2)}, Row{"c", int64(6)})
		if len(got.RowErrors) != 1 || got.Codes()[1] != "NEGATIVE" || got.Fields[0].Name != "key" {
			t.Errorf("%+v", got)
		}
	}
	m.Run("learned", three).Equal(t, Row{int64(0)}, Row{int64(1)}, Row{int64(2)})
	m.Run("closing", three).Equal(t)
	if got := m.Run("failing", three); got.Err == nil || got.Err.Error() != "[NO] as asked" {
		t.Errorf("%v", got.Err)
	}
}

func TestConfigurationContextMetricsAndLog(t *testing.T) {
	m := Load(t, map[string]string{"own.key": "own", "other.key": "other"})
	m.Context.Flow = "silver.t"
	got := m.Run("telling", three)
	if got.Err != nil || got.Metrics["m"] != 3.5 || len(got.Logs) != 1 || got.Logs[0] != "WARN own unset silver.t 1785391200000000" {
		t.Errorf("%+v", got)
	}
}

func TestStateGoesFromRunToRun(t *testing.T) {
	m := Load(t, nil)
	m.Run("counting", three).Equal(t, Row{""})
	m.Run("counting", three).Equal(t, Row{"+"})
	m.Run("counting", three).Equal(t, Row{"++"})
}

// fatal records what would have failed a test.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Helper() {}
func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f)
}

func TestBrokenRulesFailTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		input *Input
		want  string
	}{
		"lazy":       {three, "before it saw the end of input 0"},
		"too_wide":   {three, "100.0, does not fit decimal(3,1)"},
		"too_short":  {three, "row-aligned, and gave 0 rows for 3"},
		"lower_code": {three, "is not {\"code\": upper case"},
		"unknown":    {three, "no function unknown"},
		"aligned":    {Table("k string, w bigint"), "has no column v, which the function reads"},
		"learned":    {Table("k string", Row{1}), "1 (int) is no string"},
		"closing":    {Table("k strin"), "expected a type"},
		"failing":    {Table("k string, v int", Row{"a"}), "row 0 has 1 values for 2 columns"},
	} {
		func() {
			f := &fatal{TB: t}
			m := Load(t, nil)
			m.t = f
			defer func() {
				if recover() != f || !strings.Contains(f.text, c.want) {
					t.Errorf("%s: %q does not say %q", name, f.text, c.want)
				}
			}()
			m.Run(name, c.input)
		}()
	}
}

func TestQueriesGetTheAnswersOfTheTest(t *testing.T) {
	m := Load(t, nil)
	const sql = "SELECT n FROM one WHERE n > ? AND d < ? AND s = ? AND b = ? AND x IS NOT DISTINCT FROM ?"
	one := Table("n bigint")
	if r := m.Run("asked", one); r.Err == nil || !strings.Contains(r.Err.Error(), "Module.Answers") {
		t.Errorf("without an answer: %v", r.Err)
	}
	m.Answers = map[string]*Input{sql: Table("n bigint", Row{2}, Row{3})}
	r := m.Run("asked", one)
	if r.Err != nil || fmt.Sprint(r.Rows) != "[[2] [3]]" {
		t.Errorf("%v %v", r.Rows, r.Err)
	}
}
