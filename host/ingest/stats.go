package ingest

// Stats counts rows and files of a read.
type Stats struct {
	// Rows is the number of rows delivered.
	Rows int64
	// Rescued is the number of rows with rescued data, malformed ones included.
	Rescued int64
	// Malformed is the number of records that were no JSON or CSV.
	Malformed int64
	// Dropped is the number of malformed records left out under DROPMALFORMED.
	Dropped int64
	// Lost is the number of values that had no column and no rescued data column.
	Lost int64
	// PerFile has the files in the order they were given.
	PerFile []FileStats
}

// FileState is the outcome of a file, in the words of cloud_files_state.
type FileState string

// The outcomes.
const (
	FileIngested         FileState = "INGESTED"
	FileSkippedCorrupted FileState = "SKIPPED_CORRUPTED"
	FileSkippedMissing   FileState = "SKIPPED_MISSING"
)

// FileStats is what became of one file.
type FileStats struct {
	Path  string
	Rows  int64
	State FileState
}
