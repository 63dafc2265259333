package plugins

import "embed"

// Sources holds the sources of the plugins that `weir init` writes into a
// project: sap and webshop, each in its folder.
//
//go:embed sap/*.go webshop/*.go
var Sources embed.FS
