package delta

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/weir-data/weir/host/fault"
)

// CheckOptions says how thoroughly Check looks.
type CheckOptions struct {
	// Version is the one to check; nil is the newest.
	Version *int64
	// NamesOnly compares names and sizes and opens no data file.
	NamesOnly bool
	// Decode reads every value of every live file, not only its footer.
	Decode bool
	// Limit ends the check after so many problems; 0 is 1000.
	Limit int
}

const defaultCheckLimit = 1000

// CheckReport is what Check found.
type CheckReport struct {
	Version int64 `json:"version"`
	// What was looked at.
	Commits         int   `json:"commits"`
	Checkpoints     int   `json:"checkpoints"`
	Checksums       int   `json:"checksums"`
	Files           int   `json:"files"`
	Bytes           int64 `json:"bytes"`
	Rows            int64 `json:"rows"` // physical ones
	DeletionVectors int   `json:"deletion_vectors"`
	DeletedRows     int64 `json:"deleted_rows"`
	ChangeFiles     int   `json:"change_files"`
	// Problems holds what is wrong, in the order of versions and files.
	Problems []CheckProblem `json:"problems"`
	// Cut tells that there were more problems than the limit.
	Cut bool `json:"cut,omitempty"`
}

// Clean tells that nothing is wrong.
func (r *CheckReport) Clean() bool { return len(r.Problems) == 0 }

// CheckProblem is one thing that is wrong with a table.
type CheckProblem struct {
	// Code is the kind: DELTA_FILE_NOT_FOUND, DELTA_INVALID_DATA_FILE, DELTA_INVALID_CHECKPOINT and others.
	Code string `json:"code"`
	// File is what it is about, as the log names it.
	File string `json:"file,omitempty"`
	// Version is the version of the log it is about, where it is about one.
	Version *int64 `json:"version,omitempty"`
	Message string `json:"message"`
}

// Check compares a version of the table with what the log says of it: every
// live file is there, has the size and the rows that the log gives, and a
// deletion vector that can be read and fits; the files of the change data feed
// are there as long as VACUUM keeps them; every checkpoint, compacted file and
// version checksum says what the commits come to. What it finds is in the
// report; the error is for a table that cannot be opened and a check that was
// given up.
func (t *Table) Check(ctx context.Context, opt CheckOptions) (*CheckReport, error) {
	version := int64(-1)
	if opt.Version != nil {
		version = *opt.Version
		if version < 0 {
			return nil, fault.New("DELTA_VERSION_NOT_FOUND", "version %d", version)
		}
	}
	s, err := t.load(ctx, version)
	if err != nil {
		return nil, err
	}
	c := &checker{table: t, snapshot: s, opt: opt, report: &CheckReport{Version: s.version}}
	if c.opt.Limit <= 0 {
		c.opt.Limit = defaultCheckLimit
	}
	if err := c.log(ctx); err != nil {
		return nil, err
	}
	if err := c.files(ctx); err != nil {
		return nil, err
	}
	c.finish()
	return c.report, nil
}

// checker collects a report. Its parts run at once.
type checker struct {
	table    *Table
	snapshot *Snapshot
	opt      CheckOptions

	mu     sync.Mutex
	report *CheckReport
}

// found takes a problem in; err gives the code and the words.
func (c *checker) found(file string, version *int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.report.Problems) >= c.opt.Limit {
		c.report.Cut = true
		return
	}
	code := fault.CodeOf(err)
	if code == "" {
		code = "DELTA_CHECK_FAILED"
	}
	c.report.Problems = append(c.report.Problems, CheckProblem{code, file, version, err.Error()})
}

func (c *checker) finish() {
	slices.SortStableFunc(c.report.Problems, func(a, b CheckProblem) int {
		v := func(p CheckProblem) int64 {
			if p.Version == nil {
				return 1<<63 - 1
			}
			return *p.Version
		}
		return cmp.Or(cmp.Compare(v(a), v(b)), cmp.Compare(a.File, b.File), cmp.Compare(a.Code, b.Code))
	})
	if c.report.Problems == nil {
		c.report.Problems = []CheckProblem{}
	}
}
