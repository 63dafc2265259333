package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/faultstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func dir(t *testing.T) *storage.Dir {
	t.Helper()
	d, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// covers A119
func TestNamesResolveToThreeLowerCaseParts(t *testing.T) {
	def := Name{Catalog: "dwh_dev", Schema: "bronze"}
	for in, want := range map[string]string{
		"orders":                 "dwh_dev.bronze.orders",
		"Silver.Orders":          "dwh_dev.silver.orders",
		"c.s.t":                  "c.s.t",
		"`c`.`s`.`odd``name`":    "c.s.odd`name",
		"":                       "is empty",
		"a.":                     "is empty",
		".a":                     "is empty",
		"a.b.c.d":                "at most three",
		"`a":                     "not closed",
		"`a`b":                   "dot is missing",
		"a b":                    "a space",
		"`..`":                   "a dot",
		"a/b":                    "a slash",
		"_weir.x.y":              "reserved",
		"x.y.\xff":               "not UTF-8",
		strings.Repeat("x", 300): "longer",
		"x\x00":                  "control",
	} {
		n, err := ParseName(in, def)
		if err != nil {
			if !fault.Is(err, "INVALID_TABLE_NAME") || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", in, err, want)
			}
			continue
		}
		if n.String() != want {
			t.Errorf("%q: got %s, want %s", in, n, want)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a.b.c", "`a``b`.c", "`", "..", "_weir"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s, Name{Catalog: "c", Schema: "s"})
		if err != nil {
			return
		}
		quote := func(p string) string { return "`" + strings.ReplaceAll(p, "`", "``") + "`" }
		again, err := ParseName(quote(n.Catalog)+"."+quote(n.Schema)+"."+quote(n.Table), Name{})
		if err != nil || again != n {
			t.Fatalf("%q: %v, then %v %v", s, n, again, err)
		}
		if strings.Count(n.Path(), "/") != 2 || strings.Contains(n.Path(), "..") {
			t.Fatalf("%q: path %q", s, n.Path())
		}
	})
}

// covers A189
func TestATableHasOneOwner(t *testing.T) {
	ctx := context.Background()
	c := Open(dir(t))
	name := Name{"dev", "bronze", "orders"}
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() { errs[i] = c.Claim(ctx, name, fmt.Sprint("pipeline-", i)) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("%d and %d both own it", winner, i)
		case err == nil:
			winner = i
		case !fault.Is(err, "TABLE_OWNED_BY_ANOTHER_PIPELINE"):
			t.Fatal(err)
		}
	}
	o, ok, err := c.Owner(ctx, name)
	if err != nil || !ok || o.PipelineID != fmt.Sprint("pipeline-", winner) || o.Table != "dev.bronze.orders" {
		t.Fatal(o, ok, err)
	}
	if err := c.Claim(ctx, name, o.PipelineID); err != nil {
		t.Fatal("claiming again", err)
	}
	if _, ok, err := c.Owner(ctx, Name{"dev", "bronze", "other"}); ok || err != nil {
		t.Fatal(ok, err)
	}
}

func TestAClaimWhoseAnswerWasLostIsOurs(t *testing.T) {
	ctx := context.Background()
	twin := faultstore.New(dir(t))
	c := Open(twin)
	name := Name{"dev", "bronze", "orders"}
	twin.Add(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Times: 1, Effect: faultstore.LoseAnswer(errors.New("lost"))})
	if err := c.Claim(ctx, name, "p"); err == nil {
		t.Fatal("the fault did not come")
	}
	// The record is found, and nothing more is written.
	twin.Add(faultstore.Rule{Op: faultstore.OpPutIfAbsent, Effect: faultstore.Full()})
	if err := c.Claim(ctx, name, "p"); err != nil {
		t.Fatal(err)
	}
	if err := c.Claim(ctx, Name{"dev", "bronze", "new"}, "p"); !fault.Is(err, "CATALOG_UNAVAILABLE") {
		t.Fatal(err)
	}
}

func TestAPipelineKeepsItsIdentity(t *testing.T) {
	ctx := context.Background()
	c := Open(dir(t))
	if _, ok, err := c.Identity(ctx, "dwh"); ok || err != nil {
		t.Fatal("it has one before its first run", err)
	}
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := c.Identify(ctx, "dwh")
			if err != nil {
				t.Error(err)
			}
			ids[i] = id.PipelineID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 36 {
			t.Fatalf("%v", ids)
		}
	}
	if other, err := c.Identify(ctx, "other"); err != nil || other.PipelineID == ids[0] {
		t.Fatal(other, err)
	}
}

func TestDamagedRecordsHaveANamedError(t *testing.T) {
	ctx := context.Background()
	d := dir(t)
	if err := d.Put(ctx, "_weir/_catalog/c/s/t.json", []byte("{")); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(d).Owner(ctx, Name{"c", "s", "t"})
	if !fault.Is(err, "CATALOG_CORRUPT") || errors.Is(err, storage.ErrNotExist) {
		t.Fatal(err)
	}
}
