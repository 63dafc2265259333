package faultstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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

// script is a fixed sequence of calls; it gives the error of each.
func script(s storage.Store) (errs []error) {
	note := func(err error) { errs = append(errs, err) }
	note(s.Put(ctx, "a", []byte("1")))
	note(s.PutIfAbsent(ctx, "b", []byte("2")))
	if w, err := s.Create(ctx, "c"); err != nil {
		note(err)
		note(err)
	} else {
		_, err := w.Write([]byte("3"))
		note(err)
		note(errors.Join(w.Commit(), w.Abort()))
	}
	note(s.Delete(ctx, "a"))
	return errs
}

func TestEveryCallCanBeTheOneThatGoesWrong(t *testing.T) {
	whole, _ := twin(t)
	script(whole)
	calls := whole.Calls()
	if len(calls) != 7 {
		t.Fatalf("%v", calls)
	}
	for n := range calls {
		hit := 0
		s, _ := twin(t, faultstore.AtCall(n+1, faultstore.Call(func() { hit++ })))
		script(s)
		if hit != 1 {
			t.Errorf("call %d was hit %d times", n+1, hit)
		}
		s, d := twin(t, faultstore.FromCall(n+1, faultstore.Fail(errBoom)))
		script(s)
		if got := s.Calls(); len(got) < n+1 || got[n] != calls[n] {
			t.Errorf("call %d of %v, want %v", n+1, got, calls[n])
		}
		if _, err := d.Get(ctx, "b"); (err == nil) != (n+1 > 2) {
			t.Errorf("dead at call %d, b: %v", n+1, err)
		}
		if _, err := d.Get(ctx, "c"); (err == nil) != (n+1 > 5) {
			t.Errorf("dead at call %d, c: %v", n+1, err)
		}
	}
}

func TestAfterRunsWhenTheWorkIsDone(t *testing.T) {
	var s *faultstore.Store
	var d *storage.Dir
	seen := ""
	s, d = twin(t, faultstore.AtCall(1, faultstore.After(func() {
		data, _ := d.Get(ctx, "a")
		seen = string(data)
	})))
	if err := s.Put(ctx, "a", []byte("1")); err != nil || seen != "1" {
		t.Errorf("%q, %v", seen, err)
	}
}

func TestARepeatedRequestAnswersAsTheSecond(t *testing.T) {
	s, d := twin(t, faultstore.Rule{Effect: faultstore.Duplicate()})
	if err := s.PutIfAbsent(ctx, "a", []byte("1")); !errors.Is(err, storage.ErrExist) {
		t.Errorf("%v", err)
	}
	if data, err := d.Get(ctx, "a"); string(data) != "1" {
		t.Errorf("%q, %v", data, err)
	}
	if err := errors.Join(s.Put(ctx, "a", []byte("2")), s.Delete(ctx, "a"), s.Put(ctx, "a", nil)); err != nil {
		t.Error(err)
	}
	var names []string
	for info, err := range s.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			t.Error(err)
		}
		names = append(names, info.Name)
	}
	if !slices.Equal(names, []string{"a", "a"}) {
		t.Errorf("%v", names)
	}
}

func TestARequestCanComeOnceMoreTooLate(t *testing.T) {
	s, d := twin(t, faultstore.AtCall(1, faultstore.DuplicateLate(2)))
	for _, data := range []string{"1", "2", "3"} {
		if err := s.Put(ctx, "a", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := d.Get(ctx, "a"); err != nil || string(data) != "3" {
		t.Errorf("the late request came before the third: %q, %v", data, err)
	}
	s, d = twin(t, faultstore.AtCall(2, faultstore.DuplicateLate(1)))
	for _, data := range []string{"1", "2"} {
		if err := s.Put(ctx, "a", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Put(ctx, "a", []byte("3")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, "b"); !errors.Is(err, storage.ErrNotExist) {
		t.Error(err)
	}
	if data, err := d.Get(ctx, "a"); err != nil || string(data) != "2" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAListingCanComeInAnyOrder(t *testing.T) {
	s, d := twin(t)
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("%02d", i)
		want = append(want, name)
		if err := d.Put(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	names := func(seed uint64) (out []string) {
		s.Heal()
		s.Add(faultstore.Rule{Op: faultstore.OpList, Effect: faultstore.Reorder(seed)})
		for info, err := range s.List(ctx, "", storage.ListOptions{}) {
			if err != nil {
				t.Error(err)
			}
			out = append(out, info.Name)
		}
		return out
	}
	one, again, other := names(1), names(1), names(2)
	if slices.Equal(one, want) || slices.Equal(one, other) || !slices.Equal(one, again) {
		t.Errorf("%v, %v, %v", one, again, other)
	}
	if slices.Sort(one); !slices.Equal(one, want) {
		t.Errorf("%v", one)
	}
}
