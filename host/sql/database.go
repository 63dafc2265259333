package sql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/weir-data/weir/host/fault"
)

// database is one DuckDB instance; it holds no tables, only views of running
// queries.
type database struct {
	db   mapping.Database
	mu   sync.Mutex
	idle []*connection
	open int
	shut bool
}

// idleConnections is how many connections wait for the next query.
const idleConnections = 4

// openDatabase starts an instance with the settings that must be known at
// start, runs the statements, and locks the configuration.
func openDatabase(settings [][2]string, setup []string) (*database, error) {
	var config mapping.Config
	if mapping.CreateConfig(&config) == mapping.StateError {
		return nil, fault.New("INTERNAL_ERROR", "DuckDB gives no configuration")
	}
	defer mapping.DestroyConfig(&config)
	for _, s := range settings {
		if mapping.SetConfig(config, s[0], s[1]) == mapping.StateError {
			return nil, fault.New("INVALID_SQL_OPTION", "DuckDB does not take %s = %q", s[0], s[1])
		}
	}
	d := &database{}
	var msg string
	if mapping.OpenExt(":memory:", &d.db, config, &msg) == mapping.StateError {
		return nil, fault.New("INVALID_SQL_OPTION", "DuckDB does not start: %s", msg)
	}
	c, err := d.connect()
	if err != nil {
		mapping.Close(&d.db)
		return nil, err
	}
	for _, register := range []func(*connection) error{registerScan, registerProbe, registerBounds} {
		if err := register(c); err != nil {
			c.close()
			mapping.Close(&d.db)
			return nil, err
		}
	}
	for _, s := range append(setup, "SET lock_configuration = true") {
		if err := c.exec(s); err != nil {
			c.close()
			mapping.Close(&d.db)
			return nil, fault.Wrap(err, "INVALID_SQL_OPTION", "DuckDB does not take %s", s)
		}
	}
	c.release()
	return d, nil
}

// connect gives an idle connection or a new one.
func (d *database) connect() (*connection, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return nil, fault.New("SQL_ENGINE_CLOSED", "the SQL engine is closed")
	}
	if n := len(d.idle); n > 0 {
		c := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return c, nil
	}
	c := &connection{db: d}
	if mapping.Connect(d.db, &c.conn) == mapping.StateError {
		return nil, fault.New("INTERNAL_ERROR", "DuckDB gives no connection")
	}
	d.open++
	return c, nil
}

// close ends the instance. Connections in use end it when they are released.
func (d *database) close() {
	d.mu.Lock()
	if d.shut {
		d.mu.Unlock()
		return
	}
	d.shut = true
	idle := d.idle
	d.idle = nil
	if len(idle) == 0 && d.open == 0 {
		mapping.Close(&d.db)
	}
	d.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// connection runs one query at a time.
type connection struct {
	db          *database
	conn        mapping.Connection
	interrupted bool
}

// release gives the connection back; one that was interrupted is not used again.
func (c *connection) release() {
	c.db.mu.Lock()
	if !c.interrupted && !c.db.shut && len(c.db.idle) < idleConnections {
		c.db.idle = append(c.db.idle, c)
		c.db.mu.Unlock()
		return
	}
	c.db.mu.Unlock()
	c.close()
}

func (c *connection) close() {
	mapping.Disconnect(&c.conn)
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	c.db.open--
	if c.db.shut && c.db.open == 0 {
		mapping.Close(&c.db.db)
	}
}

// watch interrupts the connection when ctx ends before stop is called.
func (c *connection) watch(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		defer close(done)
		c.interrupted = true
		mapping.Interrupt(c.conn)
	})
	return func() {
		if !end() {
			<-done
		}
	}
}

// exec runs a statement without a result.
func (c *connection) exec(statement string) error {
	var res mapping.Result
	defer mapping.DestroyResult(&res)
	if mapping.Query(c.conn, statement, &res) == mapping.StateError {
		return errors.New(mapping.ResultError(&res))
	}
	return nil
}

// texts runs a query of one VARCHAR column with one parameter and gives its rows.
func (c *connection) texts(query string, param string) ([]string, error) {
	var stmt mapping.PreparedStatement
	defer mapping.DestroyPrepare(&stmt)
	if mapping.Prepare(c.conn, query, &stmt) == mapping.StateError {
		return nil, errors.New(mapping.PrepareError(stmt))
	}
	if mapping.BindVarcharLength(stmt, 1, param, mapping.IdxT(len(param))) == mapping.StateError {
		return nil, errors.New("DuckDB does not take the parameter")
	}
	var res mapping.Result
	defer mapping.DestroyResult(&res)
	if mapping.ExecutePrepared(stmt, &res) == mapping.StateError {
		return nil, errors.New(mapping.ResultError(&res))
	}
	var out []string
	for {
		chunk := mapping.FetchChunk(res)
		if chunk.Ptr == nil {
			return out, nil
		}
		data := mapping.VectorGetData(mapping.DataChunkGetVector(chunk, 0))
		values := unsafe.Slice((*mapping.StringT)(data), int(mapping.DataChunkGetSize(chunk)))
		for i := range values {
			out = append(out, mapping.StringTData(&values[i]))
		}
		mapping.DestroyDataChunk(&chunk)
	}
}

// grammar is the instance that only parses and prints SQL. It is one for the
// process and never closed: it holds nothing, and opening one takes 10 ms.
var grammar = sync.OnceValues(func() (*database, error) {
	d, err := openDatabase([][2]string{{"threads", "1"}, {"memory_limit", "256MB"}}, sandbox(""))
	if err != nil {
		return nil, fmt.Errorf("no SQL parser: %w", err)
	}
	return d, nil
})

// sandbox gives the statements that close an instance off: it reads and writes
// no files of its own accord and loads nothing.
func sandbox(tempDir string) []string {
	return []string{
		"SET temp_directory = " + quoteText(tempDir),
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET enable_external_access = false",
	}
}
