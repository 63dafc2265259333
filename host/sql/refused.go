package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// foreign are statements that a warehouse has and a pipeline has not, with what
// takes their place. The longer ones come first.
var foreign = []struct{ words, instead string }{
	{"CREATE VOLUME", "Name the volume's folder under volumes in the spec"},
	{"CREATE EXTERNAL VOLUME", "Name the volume's folder under volumes in the spec"},
	{"CREATE EXTERNAL LOCATION", "Read the location by its path; its credentials come from the environment (docs/storage.md)"},
	{"CREATE STORAGE CREDENTIAL", "Credentials come from the environment (docs/storage.md)"},
	{"CREATE CREDENTIAL", "Credentials come from the environment (docs/storage.md)"},
	{"CREATE CONNECTION", "Land the data as files and read them with STREAM read_files(…)"},
	{"CREATE CATALOG", "Name it under catalog in the spec; it needs no making"},
	{"CREATE SCHEMA", "Name it under schema in the spec or in the table's name; it needs no making"},
	{"CREATE DATABASE", "Name it under schema in the spec or in the table's name; it needs no making"},
	{"CREATE EXTERNAL TABLE", "Read the files with read_files(…), a Delta table by its name"},
	{"CREATE TABLE", "Write CREATE OR REFRESH STREAMING TABLE … FROM STREAM(…), or CREATE OR REFRESH MATERIALIZED VIEW for a batch query"},
	{"CREATE STREAMING", "Write CREATE OR REFRESH STREAMING TABLE"},
	{"CREATE LIVE", "Write CREATE OR REFRESH MATERIALIZED VIEW or STREAMING TABLE"},
	{"CREATE SINK", "Declare the sink in a plugin, and an append flow into it"},
	{"CREATE FUNCTION", "Write the expression into the query, or the function as a plugin"},
	{"CREATE EXTENSION", "DuckDB's extensions are not loaded"},
	{"CREATE MACRO", "Write the expression into the query, or the function as a plugin"},
	{"CREATE SECRET", "Write {{secrets/scope/key}} where the value is due"},
	{"CREATE INDEX", "Write CLUSTER BY on the table"},
	{"CREATE BLOOMFILTER", "Write CLUSTER BY on the table"},
	{"GRANT", "Who may read a table is up to the storage it lies on"},
	{"REVOKE", "Who may read a table is up to the storage it lies on"},
	{"DENY", "Who may read a table is up to the storage it lies on"},
	{"MERGE", "Write CREATE FLOW … AS AUTO CDC INTO, a materialized view with QUALIFY row_number() …, or a foreach_batch function of a plugin"},
	{"INSERT", "Write CREATE FLOW … AS INSERT INTO … BY NAME SELECT …"},
	{"UPDATE", "A query makes the rows; to mend some by hand use weir delta update"},
	{"DELETE", "A query makes the rows; to remove some by hand use weir delta delete"},
	{"TRUNCATE", "Use weir run --full-refresh"},
	{"COPY", "Write CREATE OR REFRESH STREAMING TABLE … AS SELECT … FROM STREAM read_files(…)"},
	{"OPTIMIZE", "Use weir delta optimize"},
	{"VACUUM", "Use weir delta vacuum"},
	{"RESTORE", "Use weir delta restore"},
	{"ANALYZE", "Statistics are written with every file"},
	{"MSCK", "Tables are Delta tables: their log knows the partitions"},
	{"ALTER", "Change the CREATE statement; the next update takes the change over"},
	{"DROP", "Take the CREATE statement out of the file"},
	{"REFRESH", "Use weir run, or weir run --refresh for one table"},
	{"SHOW", "Use weir graph"},
	{"DESCRIBE", "Use weir dry-run, which prints every dataset's columns"},
	{"DESC", "Use weir dry-run, which prints every dataset's columns"},
	{"EXPLAIN", "Use weir dry-run"},
	{"SELECT", "Put it into a CREATE … AS SELECT, or ask with weir query"},
	{"WITH", "Put it into a CREATE … AS WITH …, or ask with weir query"},
	{"VALUES", "Put it into a CREATE … AS SELECT, or ask with weir query"},
	{"FROM", "Put it into a CREATE … AS SELECT, or ask with weir query"},
	{"DECLARE", "Set a value under configuration in the spec and write ${key} or :key"},
	{"RESET", "Set values under configuration in the spec"},
	{"CACHE", "Nothing needs it: a view is computed where it is read"},
	{"UNCACHE", "Nothing needs it: a view is computed where it is read"},
	{"COMMENT", "Write COMMENT into the CREATE statement"},
	{"CALL", "A pipeline declares datasets; it calls nothing"},
	{"EXECUTE", "A pipeline declares datasets; it calls nothing"},
	{"BEGIN", "A pipeline declares datasets; it has no scripts"},
	{"ATTACH", "Read tables by catalog.schema.table"},
	{"DETACH", "Read tables by catalog.schema.table"},
	{"INSTALL", "DuckDB's extensions are not loaded"},
	{"LOAD", "DuckDB's extensions are not loaded"},
	{"PRAGMA", "Set values under configuration in the spec"},
	{"EXPORT", "Read the tables where they lie: they are Delta tables"},
	{"IMPORT", "Land the data as files and read them with STREAM read_files(…)"},
	{"AUTO CDC", "Write CREATE FLOW name AS AUTO CDC INTO …"},
}

const whatAFileHolds = "A pipeline file holds CREATE STREAMING TABLE, MATERIALIZED VIEW, VIEW, TEMPORARY VIEW and FLOW, USE and SET"

// otherCreate names what a CREATE makes that is no part of a pipeline.
func (p *parser) otherCreate(at fault.Where) error {
	for _, f := range foreign {
		what, isCreate := strings.CutPrefix(f.words, "CREATE ")
		if isCreate && p.is(strings.Fields(what)...) {
			return foreignStatement(f.words, f.instead, at)
		}
	}
	return p.unexpected("STREAMING TABLE, MATERIALIZED VIEW, TEMPORARY VIEW, VIEW or FLOW")
}

// otherStatement names a statement that is not a CREATE.
func (p *parser) otherStatement(at fault.Where) error {
	for _, f := range foreign {
		if p.is(strings.Fields(f.words)...) {
			what := f.words
			if (what == "COPY" || what == "INSERT" || what == "MERGE") && strings.EqualFold(p.peek(1), "INTO") {
				what += " INTO"
			}
			return foreignStatement(what, f.instead, at)
		}
	}
	return syntaxError(at, "no statement begins with %s", p.peek(0)).WithHint(whatAFileHolds)
}

func foreignStatement(what, instead string, at fault.Where) error {
	return fault.New("UNSUPPORTED_PIPELINE_STATEMENT", "%s is no statement of a pipeline", what).WithHint("%s", instead).At(at)
}
