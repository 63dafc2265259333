package cloud

import "time"

// SetLease shortens the life of locks.
func SetLease(s *Store, d time.Duration) { s.lease = d }
