// Package plugins holds tests over all plugins, their manifests, their size as WebAssembly and runs
// through the real runtime, and carries the sources of the example plugins for `weir init`. The plugins
// themselves are the programs in its directories, those below fixtures/ for tests only.
package plugins
