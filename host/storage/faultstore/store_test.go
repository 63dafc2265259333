package faultstore_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx     = context.Background()
	errBoom = errors.New("boom")
)

func twin(t *testing.T, rules ...faultstore.Rule) (*faultstore.Store, *storage.Dir) {
	t.Helper()
	d, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	return faultstore.New(d, rules...), d
}

func TestWritesGoWrongTheWayTheRuleSays(t *testing.T) {
	for name, c := range map[string]struct {
		effect faultstore.Effect
		err    error
		left   string // what is there afterwards; "-" is nothing
	}{
		"fails":            {faultstore.Fail(errBoom), errBoom, "-"},
		"has no room":      {faultstore.Full(), storage.ErrFull, "-"},
		"tears":            {faultstore.Tear(3, errBoom), errBoom, "hel"},
		"loses the answer": {faultstore.LoseAnswer(errBoom), errBoom, "hello"},
		"is slow":          {faultstore.Delay(time.Millisecond), nil, "hello"},
		"does nothing":     {faultstore.Effect{}, nil, "hello"},
	} {
		for op, put := range map[faultstore.Op]func(s storage.Store) error{
			faultstore.OpPut:         func(s storage.Store) error { return s.Put(ctx, "a/x", []byte("hello")) },
			faultstore.OpPutIfAbsent: func(s storage.Store) error { return s.PutIfAbsent(ctx, "a/x", []byte("hello")) },
		} {
			t.Run(string(op)+" "+name, func(t *testing.T) {
				s, d := twin(t, faultstore.Rule{Op: op, Name: "x", Effect: c.effect})
				if err := put(s); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				data, err := d.Get(ctx, "a/x")
				if errors.Is(err, storage.ErrNotExist) {
					data = []byte("-")
				}
				if string(data) != c.left {
					t.Errorf("left %q, want %q", data, c.left)
				}
			})
		}
	}
}

func TestRulesCountAndMatchNames(t *testing.T) {
	s, _ := twin(t, faultstore.Rule{Op: faultstore.OpGet, Name: "a/*", Skip: 1, Times: 2, Effect: faultstore.Fail(errBoom)})
	for _, n := range []string{"a/x", "b/x"} {
		if err := s.Put(ctx, n, nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []bool
	for range 4 {
		_, err := s.Get(ctx, "a/x")
		got = append(got, err == nil)
		if _, err := s.Get(ctx, "b/x"); err != nil {
			t.Error(err)
		}
	}
	if !got[0] || got[1] || got[2] || !got[3] {
		t.Errorf("%v", got)
	}
	if calls := s.Calls(); len(calls) != 10 || calls[0] != (faultstore.CallRecord{Op: faultstore.OpPut, Name: "a/x"}) {
		t.Errorf("%v", calls)
	}
	s.Add(faultstore.Rule{Effect: faultstore.Fail(errBoom)})
	if err := s.Delete(ctx, "a/x"); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	s.Heal()
	if err := s.Delete(ctx, "a/x"); err != nil {
		t.Error(err)
	}
}

func TestStreamsAndListingsGoWrongInTheMiddle(t *testing.T) {
	s, d := twin(t,
		faultstore.Rule{Op: faultstore.OpWrite, Skip: 1, Times: 1, Effect: faultstore.Full()},
		faultstore.Rule{Op: faultstore.OpCommit, Name: "lost", Effect: faultstore.LoseAnswer(errBoom)},
		faultstore.Rule{Op: faultstore.OpRead, Effect: faultstore.Tear(2, errBoom)},
		faultstore.Rule{Op: faultstore.OpList, Effect: faultstore.Tear(1, errBoom)},
		faultstore.Rule{Op: faultstore.OpLock, Effect: faultstore.LoseAnswer(errBoom)},
	)
	w, err := s.Create(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	_, first := w.Write([]byte("abc"))
	_, second := w.Write([]byte("def"))
	if first != nil || !errors.Is(second, storage.ErrFull) {
		t.Errorf("%v, %v", first, second)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
	w, err = s.Create(ctx, "lost")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("abc")); err != nil {
		t.Error(err)
	}
	if err := w.Commit(); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	if data, err := d.Get(ctx, "lost"); err != nil || string(data) != "abc" {
		t.Errorf("%q, %v", data, err)
	}
	o, err := s.Open(ctx, "lost")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(o); string(data) != "ab" || !errors.Is(err, errBoom) {
		t.Errorf("%q, %v", data, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Put(ctx, "more", nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.List(ctx, "", storage.ListOptions{}) {
		if n++; n == 2 && !errors.Is(err, errBoom) {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("%d yields", n)
	}
	if _, err := storage.Lock(ctx, s, "l", false); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	s.Heal()
	unlock, err := storage.Lock(ctx, storage.Sub(s, "f"), "l", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
