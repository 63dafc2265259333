package plugins

import "embed"

// Sources holds the sources of the plugins that `weir init` writes into a
// project: sap, webshop and kna1, each in its folder.
//
//go:embed sap/*.go webshop/*.go kna1/*.go
var Sources embed.FS
