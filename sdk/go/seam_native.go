//go:build !wasip1

package weir

import "github.com/weir-data/weir/sdk/go/internal/seam"

func init() {
	seam.Describe = describe
	seam.Call = call
	seam.Reset = func() { registered.reset() }
	seam.Run = func(fn any, inputs int) error {
		f := &function{name: "test", inputs: make([]Source, inputs)}
		c := newCall(f)
		return c.finish(fn.(func(*Call) error)(c))
	}
}
