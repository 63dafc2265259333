package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
)

func TestFailuresThatPassAreTriedAgain(t *testing.T) {
	for name, f := range map[string]cloudtest.Fault{
		"503": {Status: 503, Code: "SlowDown"}, "500": {Status: 500, Code: "InternalError"}, "429": {Status: 429, Code: "TooManyRequests"}, "cut": {},
	} {
		t.Run(name, func(t *testing.T) {
			fake := cloudtest.S3(t)
			s := open(t, "s3://lake/t")
			again := func() { fake.OnRequest(first(2, func(*http.Request) bool { return true }, f)) }
			again()
			if err := s.Put(ctx, "x", []byte("1")); err != nil {
				t.Errorf("put: %v", err)
			}
			again()
			if data, err := s.Get(ctx, "x"); err != nil || string(data) != "1" {
				t.Errorf("get: %q, %v", data, err)
			}
			again()
			if _, err := s.Stat(ctx, "x"); err != nil {
				t.Errorf("stat: %v", err)
			}
			again()
			for _, err := range s.List(ctx, "", storage.ListOptions{}) {
				if err != nil {
					t.Errorf("list: %v", err)
				}
			}
			again()
			if err := s.Delete(ctx, "x"); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

func TestFailuresThatStayAreNamed(t *testing.T) {
	for status, c := range map[int]struct {
		code, want string
		kind       error
	}{
		403: {"AccessDenied", "STORAGE_PERMISSION_DENIED", storage.ErrPermission},
		404: {"NoSuchBucket", "STORE_NOT_FOUND", nil},
		400: {"InvalidRequest", "STORAGE_IO_ERROR", nil},
	} {
		fake := cloudtest.S3(t)
		s := open(t, "s3://lake/t")
		fake.OnRequest(func(r *http.Request) *cloudtest.Fault { return &cloudtest.Fault{Status: status, Code: c.code} })
		_, getErr := s.Get(ctx, "x")
		_, openErr := s.Open(ctx, "x")
		var listErr error
		for _, listErr = range s.List(ctx, "", storage.ListOptions{}) {
			break
		}
		for i, err := range []error{getErr, openErr, listErr, s.Put(ctx, "x", nil)} {
			if fault.CodeOf(err) != c.want || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%d, operation %d: %v", status, i, err)
			}
			if errors.Is(err, storage.ErrNotExist) {
				t.Errorf("%d, operation %d looks like a missing object: %v", status, i, err)
			}
		}
		if n := len(fake.Calls()); n != 4 {
			t.Errorf("%d: %d requests for 4 calls", status, n)
		}
	}
}

// A Parquet file of a few row groups is read with few requests.
func TestShortReadsShareRequests(t *testing.T) {
	fake := cloudtest.S3(t)
	s := open(t, "s3://lake/t")
	const size = 8 << 20
	if err := s.Put(ctx, "x", make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	fake.Calls()
	o, err := s.Open(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	read := func(off, n int) {
		if _, err := o.ReadAt(make([]byte, n), int64(off)); err != nil {
			t.Error(err)
		}
	}
	read(size-8, 8)          // the length of the footer
	read(size-40_000, 39992) // the footer
	read(4, 100_000)         // the first column, read along by Open
	for i := range 100 {
		read(3<<20+i*1000, 1000) // small columns side by side
	}
	read(4<<20, 1<<20) // a large one
	calls := fake.Calls()
	if len(calls) > 5 {
		t.Errorf("%d requests: %v", len(calls), calls)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestAListingOutOfOrderIsAnError(t *testing.T) {
	fake := cloudtest.S3(t)
	fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
		return &cloudtest.Fault{Status: 200, Body: `<ListBucketResult><KeyCount>2</KeyCount>` +
			`<Contents><Key>t/b</Key><LastModified>2026-01-01T00:00:00Z</LastModified><Size>1</Size></Contents>` +
			`<Contents><Key>t/a</Key><LastModified>2026-01-01T00:00:00Z</LastModified><Size>1</Size></Contents></ListBucketResult>`}
	})
	s := open(t, "s3://lake/t")
	var err error
	for _, err = range s.List(ctx, "", storage.ListOptions{}) {
	}
	if fault.CodeOf(err) != "STORE_LISTS_OUT_OF_ORDER" {
		t.Errorf("%v", err)
	}
	// An answer without what the client expects is an error, not a panic.
	fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
		return &cloudtest.Fault{Status: 200, Body: `<ListBucketResult><Contents><Key>t/b</Key></Contents></ListBucketResult>`}
	})
	for _, err = range s.List(ctx, "", storage.ListOptions{}) {
	}
	if err == nil {
		t.Error("no error")
	}
}

func TestListingsLeaveOutWhatCannotBeNamed(t *testing.T) {
	fake := cloudtest.S3(t)
	s := open(t, "s3://lake/t")
	for _, key := range []string{"t/", "t/a", "t/a/", "t/b//c", "t/../d", "t/.tmp-x", "t/e__0x2f__f", "tt"} {
		fake.Put(key, nil)
	}
	var names []string
	for info, err := range s.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	if len(names) != 1 || names[0] != "a" {
		t.Errorf("%q", names)
	}
	for _, name := range []string{"e__0x2f__f", "a\nb", "a\x7f", "a\xff"} {
		if err := s.Put(ctx, name, nil); !errors.Is(err, storage.ErrInvalidName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestUploadsThatEndLeaveNoParts(t *testing.T) {
	fake := cloudtest.S3(t)
	s := open(t, "s3://lake/t")
	for _, end := range []string{"commit", "abort", "context", "failing part"} {
		ctx, cancel := context.WithCancel(ctx)
		if end == "failing part" {
			fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
				if r.URL.Query().Get("partNumber") == "2" {
					return &cloudtest.Fault{Status: 403, Code: "AccessDenied"}
				}
				return nil
			})
		}
		w, err := s.Create(ctx, end)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(make([]byte, 33<<20))
		switch end {
		case "commit":
			err = errors.Join(err, w.Commit())
		case "abort":
			err = errors.Join(err, w.Abort())
		case "context":
			cancel()
			if err := w.Commit(); err == nil {
				t.Error("committed after the context had ended")
			}
		case "failing part":
			if err == nil {
				err = w.Commit()
			}
			if !errors.Is(err, storage.ErrPermission) {
				t.Errorf("%v", err)
			}
			err = w.Abort()
		}
		if err != nil {
			t.Errorf("%s: %v", end, err)
		}
		if n := fake.Uploads(); n != 0 {
			t.Errorf("%s: %d uploads are left", end, n)
		}
		cancel()
	}
	if names := fmt.Sprint(fake.Names()); names != "[t/commit]" {
		t.Errorf("%s", names)
	}
}
