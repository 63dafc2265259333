package delta

// SchemaChange says how a commit changes the columns that there are. The zero value changes none.
type SchemaChange struct{}
