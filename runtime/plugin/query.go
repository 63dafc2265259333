package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/runtime/wire"
)

// Querier runs the queries of a guest: over the batch inputs that its function
// declared, as they are in this call, and nothing else. The reader is the
// caller's, and bounded as the query says; errors have codes in their text.
type Querier interface {
	Query(ctx context.Context, q Query) (array.RecordReader, error)
}

// Query is one query of a guest.
type Query struct {
	Function string
	SQL      string
	Params   []abi.Param
	// Empty says that the call is made to learn what the function writes: the
	// query runs over inputs without rows.
	Empty bool
	// Rows, Bytes and Time are the limits query_rows, query_bytes and query_time.
	Rows, Bytes int64
	Time        time.Duration
}

func queryOpen(in *instance, m api.Module, s []uint64) {
	text := in.memory(m, "query", s[0], s[1])
	if in.call == nil {
		s[0] = in.refuse("[" + CodeNotSupported + "] query: there are no inputs outside of weir_call")
		return
	}
	if int64(len(text)) > in.limits.QueryTextBytes {
		in.stop(overLimit("query_text", in.limits.QueryTextBytes, fmt.Sprintf("the text of a query of %d bytes", len(text))))
	}
	in.charge(8 * int64(len(text))) // it is parsed
	in.checkpoint()
	number, refused, err := in.call.query(in.ctx.Context, text)
	switch {
	case err != nil:
		in.stop(err)
	case refused != nil:
		s[0] = in.refuse(refused.Error())
	default:
		s[0] = api.EncodeI32(int32(number))
	}
}

// query opens a query as a new input. refused is for the guest, err ends the call.
func (r *run) query(ctx context.Context, text []byte) (number int, refused, err error) {
	open := int64(0)
	for _, i := range r.inputs[r.declared():] {
		if !i.finished() {
			open++
		}
	}
	if open >= r.limits.OpenQueries {
		return 0, nil, overLimit("open_queries", r.limits.OpenQueries, "one more query open at a time")
	}
	if n := int64(len(r.inputs) - r.declared()); n >= r.limits.Queries {
		return 0, nil, overLimit("queries", r.limits.Queries, "one more query of the call")
	}
	if r.call.Querier == nil {
		return 0, errorf(CodeNotSupported, "query: this host runs no queries for functions"), nil
	}
	asked, refused := abi.ParseQuery(text)
	if refused != nil {
		return 0, refused, nil
	}
	q := Query{
		Function: r.function.Name, SQL: asked.SQL, Params: asked.Params, Empty: r.learning,
		Rows: r.limits.QueryRows, Bytes: r.limits.QueryBytes, Time: r.limits.QueryTime,
	}
	r.allowance.leave()
	source, refused := r.call.Querier.Query(ctx, q)
	if err := r.allowance.back(); err != nil {
		if source != nil {
			source.Release()
		}
		return 0, nil, err
	}
	if refused != nil {
		return 0, refused, ctx.Err()
	}
	columns := make([]int, source.Schema().NumFields())
	for i := range columns {
		columns[i] = i
	}
	encoder, refused := wire.NewEncoder(source.Schema(), columns)
	if refused != nil {
		source.Release()
		return 0, because(refused, CodeSchemaMismatch, "the result of the query cannot cross to the guest"), nil
	}
	r.inputs = append(r.inputs, &input{
		source: source, encoder: encoder, limits: r.limits, maxRows: r.limits.BatchRows, allowance: r.allowance, lost: true, query: true,
	})
	return len(r.inputs) - 1, nil, nil
}

// declared is how many inputs the function has; those after them are queries.
func (r *run) declared() int { return len(r.call.Inputs) }

// dropQueries ends the queries of an attempt, before the next one asks anew.
func (r *run) dropQueries() {
	for _, i := range r.inputs[r.declared():] {
		i.release()
	}
	r.inputs = r.inputs[:r.declared()]
}
