package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
)

const queryManifest = `{"abi": 1, "module": "m", "functions": [
	{"name": "f", "kind": "query", "inputs": [{"dataset": "a", "mode": "batch"}], "output": [{"name": "id", "type": "bigint"}, {"name": "name", "type": "string"}]}]}`

var queryImports = append([]string{"query", "fail", "last_error", "row_error", "input_close"}, echoImports...)

// queried is a querier of one function.
type queried func(ctx context.Context, q Query) (array.RecordReader, error)

func (f queried) Query(ctx context.Context, q Query) (array.RecordReader, error) { return f(ctx, q) }

// asking calls query n times with a text and leaves the last answer in local 1.
func asking(n int, text string) func(a *asm) []byte {
	return func(a *asm) []byte {
		var out []byte
		for range n {
			out = cat(out, a.text(text), a.call("query"), set(1))
		}
		return out
	}
}

// ending returns 0 after a call.
func ending(call func(a *asm) []byte) func(a *asm) []byte {
	return func(a *asm) []byte { return cat(call(a), i32(0)) }
}

func TestQueriesAreBoundedAndRefusedByName(t *testing.T) {
	const good = `{"sql": "SELECT 1"}`
	broken := errors.New("[SQL_LIMIT_EXCEEDED] over query_rows = 3")
	answer := func(ctx context.Context, q Query) (array.RecordReader, error) {
		if strings.Contains(q.SQL, "bad") {
			return nil, errors.New("[NOT_ALLOWED_FOR_GUESTS] the function getenv")
		}
		in := rows(t, checked(t), "id BIGINT, name STRING", `[{"id": 7, "name": "x"}]`)
		if strings.Contains(q.SQL, "failing") {
			return &failingReader{RecordReader: in, err: broken}, nil
		}
		return in, nil
	}
	// Gives the text of last_error as the reason of the failure.
	tell := func(a *asm) []byte {
		return cat(i32(atBuffer), i32(1000), a.call("last_error"), set(1), i32(atBuffer), get(1), a.call("fail"), i32(1))
	}
	read := func(a *asm) []byte { return cat(get(1), a.call("input_next"), drop) }
	for name, c := range map[string]struct {
		limits  Limits
		querier Querier
		call    func(a *asm) []byte
		code    string
		text    string
	}{
		"no querier":        {Limits{}, nil, func(a *asm) []byte { return cat(asking(1, good)(a), tell(a)) }, CodeFailed, "[NOT_SUPPORTED] query: this host"},
		"no JSON":           {Limits{}, queried(answer), func(a *asm) []byte { return cat(asking(1, "oops")(a), tell(a)) }, CodeFailed, "[INVALID_QUERY_REQUEST]"},
		"an unknown field":  {Limits{}, queried(answer), func(a *asm) []byte { return cat(asking(1, `{"sql": "x", "grants": []}`)(a), tell(a)) }, CodeFailed, "[INVALID_QUERY_REQUEST] grants"},
		"a list as a value": {Limits{}, queried(answer), func(a *asm) []byte { return cat(asking(1, `{"sql": "x", "params": [[1]]}`)(a), tell(a)) }, CodeFailed, "[INVALID_QUERY_REQUEST] params[0]"},
		"refused":           {Limits{}, queried(answer), func(a *asm) []byte { return cat(asking(1, `{"sql": "bad"}`)(a), tell(a)) }, CodeFailed, "[NOT_ALLOWED_FOR_GUESTS] the function getenv"},
		"a long text":       {Limits{QueryTextBytes: 10}, queried(answer), ending(asking(1, good)), CodeLimit, "query_text = 10"},
		"too many open":     {Limits{OpenQueries: 3}, queried(answer), ending(asking(4, good)), CodeLimit, "open_queries = 3"},
		"too many": {Limits{Queries: 5}, queried(answer), func(a *asm) []byte {
			var out []byte
			for range 6 {
				out = cat(out, asking(1, good)(a), get(1), a.call("input_close"), drop)
			}
			return cat(out, i32(0))
		}, CodeLimit, "queries = 5"},
		"a result that ends early": {Limits{}, queried(answer), func(a *asm) []byte { return cat(asking(1, `{"sql": "failing"}`)(a), read(a), read(a), read(a), i32(0)) }, "", broken.Error()},
		"a row error of a query": {Limits{}, queried(answer), func(a *asm) []byte {
			return cat(asking(1, good)(a), read(a), read(a), get(1), i64(0), a.text(`{"code": "X", "message": ""}`), a.call("row_error"), i32(0))
		}, CodeOutputInvalid, "input 1, which is a query's"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{})
			m, err := e.Load(context.Background(), guest(queryManifest, queryImports, c.call), Config{Name: "m", Limits: c.limits})
			if err != nil {
				t.Fatal(err)
			}
			_, err = mapRows(t, m, Call{Function: "f", Querier: c.querier, Inputs: nil}, rows(t, checked(t), "id BIGINT, name STRING"))
			if c.code == "" {
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v, want %s", err, c.text)
				}
				return
			}
			wantError(t, err, c.code, c.text)
		})
	}
}

// failingReader fails after its rows.
type failingReader struct {
	array.RecordReader
	err error
	end bool
}

func (f *failingReader) Next() bool {
	f.end = !f.RecordReader.Next()
	return !f.end
}

func (f *failingReader) Err() error {
	if f.end {
		return f.err
	}
	return nil
}

// What a querier gives is released when it is read to its end, closed, or left at the end of the call.
func TestQueriesAreGivenBack(t *testing.T) {
	for name, after := range map[string]func(a *asm) []byte{
		"left":   func(*asm) []byte { return nil },
		"closed": func(a *asm) []byte { return cat(get(1), a.call("input_close"), drop) },
		"read to end": func(a *asm) []byte {
			return cat(get(1), a.call("input_next"), drop, get(1), a.call("input_next"), drop, get(1), a.call("input_next"), drop)
		},
		"a trap": func(*asm) []byte { return unreachable },
	} {
		t.Run(name, func(t *testing.T) {
			mem := checked(t) // fails when something is left
			m := load(t, newEngine(t, Options{}), guest(queryManifest, queryImports, func(a *asm) []byte {
				return cat(asking(2, `{"sql": "SELECT 1", "params": [1, "a", null, {"type": "date", "value": "2026-01-31"}]}`)(a), after(a), i32(0))
			}), nil)
			var asked []string
			_, err := mapRows(t, m, Call{Function: "f", Mem: mem, Querier: queried(func(_ context.Context, q Query) (array.RecordReader, error) {
				asked = append(asked, fmt.Sprint(q.Function, " ", q.SQL, " ", q.Params, " ", q.Rows))
				return rows(t, mem, "id BIGINT", `[{"id": 1}]`), nil
			})}, rows(t, mem, "id BIGINT, name STRING"))
			if (err != nil) != (name == "a trap") {
				t.Error(err)
			}
			want := "f SELECT 1 [{bigint 1 false} {string a false} {  true} {date 2026-01-31 false}] 10000000"
			if len(asked) != 2 || asked[0] != want {
				t.Errorf("asked %v, want %s", asked, want)
			}
		})
	}
}
