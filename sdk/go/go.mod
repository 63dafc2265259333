module github.com/weir-data/weir/sdk/go

go 1.26
