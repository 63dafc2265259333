package cloud_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
)

// each runs a test on a folder t of every service.
func each(t *testing.T, test func(t *testing.T, fake *cloudtest.Server, s *cloud.Store)) {
	for _, v := range services {
		t.Run(v.name, func(t *testing.T) {
			fake := v.start(t)
			test(t, fake, open(t, v.url+"t"))
		})
	}
}

// first makes the first n requests that fit fail.
func first(n int64, fits func(r *http.Request) bool, f cloudtest.Fault) func(r *http.Request) *cloudtest.Fault {
	var seen atomic.Int64
	return func(r *http.Request) *cloudtest.Fault {
		if fits(r) && seen.Add(1) <= n {
			return &f
		}
		return nil
	}
}

// conditional fits the writes that must not replace.
func conditional(r *http.Request) bool {
	return r.Header.Get("If-None-Match") == "*" || r.URL.Query().Get("ifGenerationMatch") == "0"
}

// A put whose answer is lost is made again by the client, which then finds its own object.
func TestAPutWhoseAnswerWasLostIsWon(t *testing.T) {
	for name, f := range map[string]cloudtest.Fault{
		"connection cut":             {Done: true},
		"500 after it was made":      {Status: 500, Code: "InternalError", Done: true},
		"503 before":                 {Status: 503, Code: "SlowDown"},
		"another write is under way": {Status: 409, Code: "ConditionalRequestConflict"},
		"409 after it was made":      {Status: 409, Code: "OperationAborted", Done: true},
	} {
		each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
			if err := s.Probe(ctx); err != nil {
				t.Fatal(err)
			}
			fake.OnRequest(first(1, conditional, f))
			if err := s.PutIfAbsent(ctx, "x", []byte("ours")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.PutIfAbsent(ctx, "x", []byte("ours")); !errors.Is(err, storage.ErrExist) {
				t.Errorf("the next writer: %v", err)
			}
			if data, _ := fake.Object("t/x"); string(data) != "ours" {
				t.Errorf("%q", data)
			}
		})
	}
}

// When a rival's object lies there, a lost answer does not make it ours.
func TestARivalsObjectIsNotOurs(t *testing.T) {
	each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
		if err := s.Probe(ctx); err != nil {
			t.Fatal(err)
		}
		var once atomic.Bool
		fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
			if conditional(r) && once.CompareAndSwap(false, true) {
				fake.Put("t/x", []byte("ours"))
				return &cloudtest.Fault{Status: 500, Code: "InternalError"}
			}
			return nil
		})
		if err := s.PutIfAbsent(ctx, "x", []byte("ours")); !errors.Is(err, storage.ErrExist) {
			t.Errorf("%v", err)
		}
	})
}

func TestAStoreThatIgnoresConditionsIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(*cloudtest.Server){
		"writes over": (*cloudtest.Server).IgnoreConditions,
		"does not know them": func(s *cloudtest.Server) {
			s.OnRequest(func(r *http.Request) *cloudtest.Fault {
				if conditional(r) {
					return &cloudtest.Fault{Status: 501, Code: "NotImplemented"}
				}
				return nil
			})
		},
	} {
		each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
			prepare(fake)
			err := s.PutIfAbsent(ctx, "x", []byte("1"))
			if fault.CodeOf(err) != "STORE_WITHOUT_CONDITIONAL_PUT" || !strings.Contains(err.Error(), "://lake/t") {
				t.Errorf("%s: %v", name, err)
			}
			if names := fake.Names(); len(names) > 0 {
				t.Errorf("left %v", names)
			}
			// What needs no condition works.
			if err := s.Put(ctx, "x", []byte("1")); err != nil {
				t.Error(err)
			}
			if err := s.Probe(ctx); fault.CodeOf(err) != "STORE_WITHOUT_CONDITIONAL_PUT" {
				t.Errorf("asked again: %v", err)
			}
		})
	}
}

func TestTheProbeIsMadeOnceAndLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
		if err := errors.Join(s.Probe(ctx), s.PutIfAbsent(ctx, "a", nil), s.PutIfAbsent(ctx, "b", nil)); err != nil {
			t.Fatal(err)
		}
		puts := 0
		for _, call := range fake.Calls() {
			if strings.HasPrefix(call, "PUT") || strings.HasPrefix(call, "POST") {
				puts++
			}
		}
		if names := fmt.Sprint(fake.Names()); puts != 4 || names != "[t/a t/b]" {
			t.Errorf("%d puts, %s", puts, names)
		}
	})
}

// cutBody sends less than it announced.
func cutBody(fake *cloudtest.Server, times int64) {
	var seen atomic.Int64
	fake.OnRequest(func(r *http.Request) *cloudtest.Fault {
		if r.Method == http.MethodGet && (r.Header.Get("Range") != "" || r.Header.Get("x-ms-range") != "") && seen.Add(1) <= times {
			return &cloudtest.Fault{Torn: true}
		}
		return nil
	})
}

func TestReadsThatBreakOffGoOn(t *testing.T) { each(t, readsGoOn) }

func readsGoOn(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
	data := bytes.Repeat([]byte("0123456789"), 300_000)
	if err := s.Put(ctx, "x", data); err != nil {
		t.Fatal(err)
	}
	cutBody(fake, 2)
	o, err := s.Open(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	cutBody(fake, 2)
	p := make([]byte, 1<<20)
	if n, err := o.ReadAt(p, 1_000_000); n != len(p) || err != nil || !bytes.Equal(p, data[1_000_000:1_000_000+len(p)]) {
		t.Errorf("%d, %v", n, err)
	}
	cutBody(fake, 2)
	if all, err := io.ReadAll(o); err != nil || !bytes.Equal(all, data) {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	cutBody(fake, 1000)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := s.Open(short, "x"); err == nil {
		t.Error("a read that always breaks off is no error")
	}
}

func TestAnObjectThatWasReplacedIsNotMixed(t *testing.T) { each(t, replacedIsNotMixed) }

func replacedIsNotMixed(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
	if err := s.Put(ctx, "x", bytes.Repeat([]byte("a"), 2<<20)); err != nil {
		t.Fatal(err)
	}
	o, err := s.Open(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	fake.Put("t/x", bytes.Repeat([]byte("b"), 2<<20))
	p := make([]byte, 10)
	if _, err := o.ReadAt(p, 1<<20); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("%q, %v", p, err)
	}
	if all, err := io.ReadAll(o); err == nil || bytes.Contains(all, []byte("b")) {
		t.Errorf("%d bytes, %v", len(all), err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// Other engines must find an object under the name that the log tells.
func TestNamesAreTheKeysOfObjects(t *testing.T) {
	each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
		for _, name := range []string{"p=a%3Ab/x", "p=a b+c/x", `p=#?&"/x`, "ü/x"} {
			if err := s.Put(ctx, name, []byte(name)); err != nil {
				t.Fatal(err)
			}
			if data, ok := fake.Object("t/" + name); !ok || string(data) != name {
				t.Errorf("%q lies elsewhere: %q", name, fake.Names())
			}
			folder, _, _ := strings.Cut(name, "/")
			n := 0
			for info, err := range s.List(ctx, folder, storage.ListOptions{After: folder + "/a"}) {
				if n++; err != nil || info.Name != name {
					t.Errorf("%+v, %v", info, err)
				}
			}
			if n != 1 {
				t.Errorf("%q: listed %d times", name, n)
			}
		}
	})
}

// What may not be read is not missing.
func TestDenialIsNotAbsence(t *testing.T) {
	each(t, func(t *testing.T, fake *cloudtest.Server, s *cloud.Store) {
		fake.OnRequest(func(r *http.Request) *cloudtest.Fault { return &cloudtest.Fault{Status: 403, Code: "AccessDenied"} })
		_, getErr := s.Get(ctx, "x")
		_, openErr := s.Open(ctx, "x")
		_, statErr := s.Stat(ctx, "x")
		var listErr error
		for _, listErr = range s.List(ctx, "", storage.ListOptions{}) {
			break
		}
		for i, err := range []error{getErr, openErr, statErr, listErr, s.Put(ctx, "x", nil), s.PutIfAbsent(ctx, "x", nil), s.Delete(ctx, "x")} {
			if !errors.Is(err, storage.ErrPermission) || errors.Is(err, storage.ErrNotExist) {
				t.Errorf("operation %d: %v", i, err)
			}
		}
	})
}

func TestURLsSayWhereTheyLead(t *testing.T) {
	for url, want := range map[string]string{
		"s3://b/a/b/":                           "s3://b/a/b",
		"s3a://b":                               "s3://b",
		"S3://b/a%20b":                          "s3://b/a b",
		"gs://b/x":                              "gs://b/x",
		"abfss://c@acct.dfs.core.windows.net/x": "azblob://c/x",
		"azblob://c/x?storage_account=a":        "azblob://c/x",
		"s3://b/../x":                           "INVALID_STORE_URL",
		"s3://b/a//x":                           "INVALID_STORE_URL",
		"s3:///x":                               "INVALID_STORE_URL",
		"s3://key:secret@b/x":                   "INVALID_STORE_URL",
		"s3://b/x#y":                            "INVALID_STORE_URL",
		"s3://b/x?no_such_parameter=1":          "INVALID_STORE_URL",
		"gs://b/x?no_such_parameter=1":          "INVALID_STORE_URL",
		"azblob://c/x?storage_account=a&nothing=1": "INVALID_STORE_URL",
		"ftp://b/x": "INVALID_STORE_URL",
		"/local":    "INVALID_STORE_URL",
	} {
		t.Setenv("AWS_REGION", "us-east-1")
		t.Setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
		s, err := cloud.Open(ctx, url)
		got := fault.CodeOf(err)
		if err == nil {
			got = s.Root()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if got != want {
			t.Errorf("%s: %q (%v), want %q", url, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
}
