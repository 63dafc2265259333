// Command weir runs declarative data pipelines over Delta Lake tables.
package main

import (
	"os"

	"github.com/weir-data/weir/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
