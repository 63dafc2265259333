// Package foreign tells whether others changed the rows of a CDC target since
// its state was written.
//
// The state of AUTO CDC says which rows the target has. A commit that the state
// does not know of, and that added or took away rows, makes that untrue: the
// next batch would update a row that is gone, or add a second one of its key. So
// before each batch the commits since the one the state was computed on are
// looked at, usually a single one, which is our own. These pass:
//
//   - our own, which carry the transaction of the state;
//   - those that change no file, such as new properties or a schema;
//   - those whose files all have dataChange=false: OPTIMIZE moves rows only.
//
// Any other ends the flow with CDC_TARGET_CHANGED, unless the target has the very
// files again that our last commit left, as after a RESTORE that takes the change
// back. Where the log has no entries for that time any more, the number of live
// rows decides, with a warning.
//
// Nothing is folded in. A row that another writer brought has no sequence, so any
// place in the order of events that one gave it would be a guess.
package foreign
