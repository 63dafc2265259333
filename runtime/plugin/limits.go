package plugin

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weir-data/weir/runtime/meter"
)

// Limits bounds what one module may take. A zero field means its default.
// Every limit here is enforced; an error names it as a pipeline's spec does,
// with its value. The defaults are for modules of a team that is trusted not
// to be wasteful: they stop what runs away and let through what is only large.
type Limits struct {
	// MemoryBytes (memory) is the linear memory of one instance. Only what is
	// touched is real memory, so the default is generous: 256 MiB. A Go guest
	// that keeps 200,000 rates and one batch takes 30.
	MemoryBytes int64
	// TableElements (table_size) is the most entries of one table of function
	// references. A large Go module has 20,000 functions. Default 131,072.
	TableElements int64

	// GuestTime (time) is how long the guest may run in one task, both attempts of
	// a task that ran out of memory together. Waiting for a source, a sink or
	// the log does not count; what the host does on the guest's behalf (checking
	// its output, copying) does. A task of 10 M rows takes a Go guest seconds,
	// JSON in Python minutes. Default 10 min.
	GuestTime time.Duration
	// HostTime (host_time) is how long a task may wait for its sources and its sink.
	// It is looked at when they come back: it ends a task that crawls, and a
	// source that hangs is its own context's business. Default 6 h.
	HostTime time.Duration
	// Fuel (fuel) is about the number of instructions of one task. Unlike time
	// it is the same on every machine. Default 10^13, which is more than
	// GuestTime lets through anywhere.
	Fuel int64
	// SetupTime and SetupFuel (setup_time, setup_fuel) bound the start function and
	// _initialize of an instance, and weir_describe, each on its own.
	// CPython starts in a second, Go in 10 ms. Defaults 10 s and 2·10^10.
	SetupTime time.Duration
	SetupFuel int64

	// BatchRows (batch_rows) is the most rows of an input message. Larger batches are cut.
	// Past 64k rows a call's fixed costs do not show any more. Default 65,536.
	BatchRows int64
	// BatchBytes (batch_bytes) is the most bytes of an input message; a batch that is larger
	// is cut, a single row that is larger ends the call. Default: a quarter of
	// MemoryBytes, so that input, output and what the guest needs between fit.
	BatchBytes int64
	// OpenInputs (open_inputs) is the most inputs of one call. A join of more
	// than 64 tables in one function is a mistake. Default 64.
	OpenInputs int64

	// OpenQueries (open_queries) is the most queries of a guest that are open at once, each of
	// which holds a part of the SQL engine's memory; Queries (queries) those of one call, which is
	// for few large questions, not for one a row. Defaults 16 and 1,000.
	OpenQueries int64
	Queries     int64
	// QueryTextBytes (query_text) of one query with its parameters. Default 64 KiB.
	QueryTextBytes int64
	// QueryRows, QueryBytes and QueryTime (query_rows, query_bytes, query_time) bound the result of
	// one query and how long the engine works for it. Defaults 10 M, 1 GiB and 5 min.
	QueryRows  int64
	QueryBytes int64
	QueryTime  time.Duration

	// OutputBytes and OutputRows (output_bytes, output_rows) are of one call (one task). They catch a
	// function that multiplies without end. Defaults 16 GiB and 1 G rows.
	OutputBytes int64
	OutputRows  int64
	// OutputBatchRows (output_batch_rows) is the most rows of one output batch, whose columns may
	// take no bytes at all. Default 4 Mi.
	OutputBatchRows int64
	// EmptyBatches (empty_batches) is the most output batches without rows in one
	// call: a filter gives one for each input batch it drops. Default 1 Mi.
	EmptyBatches int64
	// RowErrors and RowErrorBytes (row_errors, row_error_bytes) of one call: every
	// row of a large task, and 100 bytes for each. Defaults 10 M and 1 GiB.
	RowErrors     int64
	RowErrorBytes int64
	// LogBytes (log_bytes) of one call; what comes after is dropped, with one line that
	// says so. Default 256 KiB.
	LogBytes int64
	// TextBytes (text_bytes) is the most of one text that a person reads (log line, fail,
	// message of a row error); more is cut. Default 8 KiB.
	TextBytes int64
	// MetricNames (metrics) is the number of different metrics of one call, each with a
	// name of at most 255 bytes. Default 1,000.
	MetricNames int64
	// StateBytes (state_bytes) is the state of a stateful function, which is
	// rewritten with every micro-batch. Default 16 MiB.
	StateBytes int64

	// ModuleBytes (module_bytes) is the size of a .wasm file. Go modules with the SDK have
	// 2.5 MB, with arrow-go 14 MB, CPython 25 MB. Default 64 MiB.
	ModuleBytes int64
	// ManifestBytes (manifest_bytes) of one module. Default 4 MiB.
	ManifestBytes int64
	// Shape bounds what makes a module slow to compile, since nothing can stop a
	// compiler. Its ModuleBytes, MemoryBytes, TableElements and InitialFuel are
	// set by this package. Names in the spec as in [LimitNames].
	Shape meter.Limits
}

// unit of a limit, for reading and showing it.
type limitUnit byte

const (
	unitCount limitUnit = iota
	unitBytes
	unitTime
)

// limit describes one field of Limits.
type limit struct {
	name     string // in a spec, and in errors
	unit     limitUnit
	field    func(l *Limits) *int64
	standard int64 // the default; 0 for those that others decide
	least    int64
	most     int64
}

const (
	page    = 64 << 10
	noBound = 1 << 62
)

// limitTable lists every limit, in the order in which they are shown.
var limitTable = append(ownLimits, shapeLimits()...)

// shapeLimits are the fields of Shape that are not set from others; their
// names are made of the fields', so that the meter can get new ones.
func shapeLimits() (out []limit) {
	shape := reflect.TypeFor[meter.Limits]()
	for i := range shape.NumField() {
		f := shape.Field(i)
		switch f.Name {
		case "ModuleBytes", "MemoryBytes", "TableElements", "InitialFuel":
			continue
		}
		d := limit{name: specName(f.Name), least: 1, most: 1 << 40, field: func(l *Limits) *int64 {
			return reflect.ValueOf(&l.Shape).Elem().Field(i).Addr().Interface().(*int64)
		}}
		if strings.HasSuffix(d.name, "_bytes") {
			d.unit = unitBytes
		}
		out = append(out, d)
	}
	return out
}

var ownLimits = []limit{
	{"memory", unitBytes, func(l *Limits) *int64 { return &l.MemoryBytes }, 256 << 20, page, 4 << 30},
	{"table_size", unitCount, func(l *Limits) *int64 { return &l.TableElements }, 128 << 10, 1, 10_000_000},
	{"time", unitTime, func(l *Limits) *int64 { return (*int64)(&l.GuestTime) }, int64(10 * time.Minute), 1, noBound},
	{"host_time", unitTime, func(l *Limits) *int64 { return (*int64)(&l.HostTime) }, int64(6 * time.Hour), 1, noBound},
	{"fuel", unitCount, func(l *Limits) *int64 { return &l.Fuel }, 10_000_000_000_000, 1, noBound},
	{"setup_time", unitTime, func(l *Limits) *int64 { return (*int64)(&l.SetupTime) }, int64(10 * time.Second), 1, noBound},
	{"setup_fuel", unitCount, func(l *Limits) *int64 { return &l.SetupFuel }, 20_000_000_000, 1, noBound},
	{"batch_rows", unitCount, func(l *Limits) *int64 { return &l.BatchRows }, 64 << 10, 1, 1 << 31},
	{"batch_bytes", unitBytes, func(l *Limits) *int64 { return &l.BatchBytes }, 0, 1, 2 << 30},
	{"open_inputs", unitCount, func(l *Limits) *int64 { return &l.OpenInputs }, 64, 1, 10_000},
	{"open_queries", unitCount, func(l *Limits) *int64 { return &l.OpenQueries }, 16, 1, 1000},
	{"queries", unitCount, func(l *Limits) *int64 { return &l.Queries }, 1000, 1, 1_000_000},
	{"query_text", unitBytes, func(l *Limits) *int64 { return &l.QueryTextBytes }, 64 << 10, 1, 64 << 10},
	{"query_rows", unitCount, func(l *Limits) *int64 { return &l.QueryRows }, 10_000_000, 1, noBound},
	{"query_bytes", unitBytes, func(l *Limits) *int64 { return &l.QueryBytes }, 1 << 30, 1, noBound},
	{"query_time", unitTime, func(l *Limits) *int64 { return (*int64)(&l.QueryTime) }, int64(5 * time.Minute), 1, noBound},
	{"output_bytes", unitBytes, func(l *Limits) *int64 { return &l.OutputBytes }, 16 << 30, 1, noBound},
	{"output_rows", unitCount, func(l *Limits) *int64 { return &l.OutputRows }, 1 << 30, 1, noBound},
	{"output_batch_rows", unitCount, func(l *Limits) *int64 { return &l.OutputBatchRows }, 4 << 20, 1, 1 << 31},
	{"empty_batches", unitCount, func(l *Limits) *int64 { return &l.EmptyBatches }, 1 << 20, 1, noBound},
	{"row_errors", unitCount, func(l *Limits) *int64 { return &l.RowErrors }, 10_000_000, 1, noBound},
	{"row_error_bytes", unitBytes, func(l *Limits) *int64 { return &l.RowErrorBytes }, 1 << 30, 1, noBound},
	{"log_bytes", unitBytes, func(l *Limits) *int64 { return &l.LogBytes }, 256 << 10, 1, 1 << 40},
	{"text_bytes", unitBytes, func(l *Limits) *int64 { return &l.TextBytes }, 8 << 10, 1, 1 << 30},
	{"metrics", unitCount, func(l *Limits) *int64 { return &l.MetricNames }, 1000, 1, 1_000_000},
	{"state_bytes", unitBytes, func(l *Limits) *int64 { return &l.StateBytes }, 16 << 20, 1, 2 << 30},
	{"module_bytes", unitBytes, func(l *Limits) *int64 { return &l.ModuleBytes }, 64 << 20, 1, 1 << 30},
	{"manifest_bytes", unitBytes, func(l *Limits) *int64 { return &l.ManifestBytes }, 4 << 20, 1, 1 << 30},
}

// DefaultLimits are the limits of a module for which the operator set none.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

// over gives these limits, with base's where these say nothing.
func (l Limits) over(base Limits) Limits {
	for i := range limitTable {
		if mine := limitTable[i].field(&l); *mine <= 0 {
			*mine = *limitTable[i].field(&base)
		}
	}
	return l
}

func (l Limits) withDefaults() Limits {
	for i := range limitTable {
		if d := &limitTable[i]; d.standard > 0 && *d.field(&l) <= 0 {
			*d.field(&l) = d.standard
		}
	}
	l = l.over(Limits{Shape: meter.DefaultLimits()})
	if l.BatchBytes <= 0 {
		l.BatchBytes = l.MemoryBytes / 4
	}
	l.Shape.ModuleBytes, l.Shape.TableElements, l.Shape.InitialFuel = l.ModuleBytes, l.TableElements, 0
	// The allocator keeps memories under their limit: it hears of a refusal,
	// which a lowered maximum would hide, and code does not depend on the limit.
	l.Shape.MemoryBytes = 4 << 30
	return l
}

// overLimit is the error of a guest that took more than the limit of that
// name in the spec.
func overLimit(name string, value int64, what string) *Error {
	e := errorf(CodeLimit, "%s is over the limit %s = %s", what, name, show(name, value))
	e.Limit, e.Value = name, value
	return e
}

// show gives a limit's value as an error tells it.
func show(name string, value int64) string {
	if l := limitNamed(name); l != nil && l.unit == unitTime {
		return time.Duration(value).String()
	}
	return fmt.Sprint(value)
}

func limitNamed(name string) *limit {
	for i := range limitTable {
		if limitTable[i].name == name {
			return &limitTable[i]
		}
	}
	return nil
}
