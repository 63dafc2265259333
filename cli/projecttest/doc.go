// Package projecttest runs the test scripts of a user's project: txtar files of
// rogpeppe/go-internal/testscript, in which `weir` is the running program.
//
// Each script starts in a new folder that holds a copy of the spec, its SQL
// files and its modules, besides the files of the script itself, which win. Its
// lake is a new one: a spec whose storage does not lie within the project is
// refused, so that no test can touch real tables. The environment is
// testscript's, not the caller's; only the cache of compiled modules is shared.
//
// Scripts run one after the other. The package prints nothing.
package projecttest
