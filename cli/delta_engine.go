package cli

import (
	"context"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/sql"
)

// tableEngine is the SQL engine for the expressions of one table, started when
// there is one to evaluate: most verbs of weir delta need none.
type tableEngine struct {
	started *sql.Engine
}

func (e *tableEngine) get(ctx context.Context) (_ *sql.Engine, err error) {
	if e.started == nil {
		e.started, err = sql.Open(ctx, sql.Options{})
	}
	return e.started, err
}

func (e *tableEngine) close() error {
	if e.started == nil {
		return nil
	}
	return e.started.Close()
}

func (e *tableEngine) option() delta.Option {
	return delta.WithEngine(sql.NewEvaluator(e.get, nil))
}
