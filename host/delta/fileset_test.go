package delta

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// Rule: a file set is a map, and a set that others were derived from never changes.
func TestAFileSetIsAMapThatVersionsShare(t *testing.T) {
	for seed := range uint64(6) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		type version struct {
			set  *fileSet[int]
			want map[string]int
		}
		versions := []version{{newFileSet[int](), map[string]int{}}}
		for i := range 60 {
			from := versions[rnd.IntN(len(versions))]
			set, want := from.set, maps.Clone(from.want)
			if i > 0 {
				set = set.fork()
			}
			change := 1 << rnd.IntN(12)
			for range change {
				k := fmt.Sprint("k", rnd.IntN(1+change*3))
				switch rnd.IntN(3) {
				case 0:
					set.drop(k)
					delete(want, k)
				default:
					v := rnd.Int()
					set.set(k, &v)
					want[k] = v
				}
			}
			set.freeze()
			versions = append(versions, version{set, want})
			if i == 0 {
				versions = versions[1:] // what owns its base is changed in place
			}
		}
		for i, v := range versions {
			got := map[string]int{}
			v.set.each(func(k string, p *int) {
				if _, twice := got[k]; twice {
					t.Fatalf("seed %d, version %d: %s twice", seed, i, k)
				}
				got[k] = *p
			})
			if !maps.Equal(got, v.want) || v.set.n != len(v.want) {
				t.Fatalf("seed %d, version %d: %d of %d entries, n %d", seed, i, len(got), len(v.want), v.set.n)
			}
			for k, w := range v.want {
				if p, ok := v.set.get(k); !ok || *p != w {
					t.Fatalf("seed %d, version %d: %s", seed, i, k)
				}
			}
			if _, ok := v.set.get("none"); ok {
				t.Error("found what is not there")
			}
			for j := 1; j < len(v.set.over); j++ {
				if len(v.set.over[j-1]) < len(v.set.over[j]) {
					t.Errorf("seed %d, version %d: layers of %d and %d", seed, i, len(v.set.over[j-1]), len(v.set.over[j]))
				}
			}
		}
	}
}
