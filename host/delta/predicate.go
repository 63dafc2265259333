package delta

// Predicate is a condition on columns that files can be skipped by.
type Predicate struct{}
