// Package plugins holds tests over all plugins: their manifests, their size as WebAssembly, and a
// conversion run end to end through the real runtime. The plugins themselves are the programs in its
// directories; nothing imports this package.
package plugins
