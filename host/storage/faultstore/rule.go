package faultstore

import (
	"path"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// Op names an operation of a store.
type Op string

// The operations. A streaming write is Create, then OpWrite for each piece, then OpCommit.
const (
	OpGet         Op = "get"
	OpOpen        Op = "open"
	OpRead        Op = "read"
	OpStat        Op = "stat"
	OpPut         Op = "put"
	OpPutIfAbsent Op = "put-if-absent"
	OpCreate      Op = "create"
	OpWrite       Op = "write"
	OpCommit      Op = "commit"
	OpList        Op = "list"
	OpDelete      Op = "delete"
	OpLock        Op = "lock"
)

// Rule says what happens to some of the calls. The first rule that fits a call decides.
type Rule struct {
	// Op is the operation, "" any.
	Op Op
	// Name is a pattern of path.Match for the whole name or for its last element, "" any.
	Name string
	// Skip lets that many fitting calls pass first.
	Skip int
	// Times is how many calls are hit after that; 0 is all.
	Times int
	// Effect is what happens to them.
	Effect Effect
}

// Effect is what happens to a call that is hit. The zero Effect lets it pass.
type Effect struct {
	delay  time.Duration
	err    error
	keep   int  // bytes that are written or read before the failure, -1: none
	answer bool // the work is done before the failure
	call   func()
}

// Fail makes the call fail without doing anything.
func Fail(err error) Effect { return Effect{err: err, keep: -1} }

// Full makes the call fail for want of room, without doing anything.
func Full() Effect { return Fail(storage.ErrFull) }

// Delay makes the call wait first.
func Delay(d time.Duration) Effect { return Effect{delay: d, keep: -1} }

// Tear does the first n bytes of the work, then fails: what a medium without
// atomic writes leaves behind.
func Tear(n int, err error) Effect { return Effect{err: err, keep: n} }

// LoseAnswer does the work, then fails.
func LoseAnswer(err error) Effect { return Effect{err: err, keep: -1, answer: true} }

// Call runs f before the call, such as a rival's commit.
func Call(f func()) Effect { return Effect{call: f, keep: -1} }

func (r *Rule) fits(op Op, name string) bool {
	if r.Op != "" && r.Op != op {
		return false
	}
	return r.Name == "" || match(r.Name, name) || match(r.Name, path.Base(name))
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
