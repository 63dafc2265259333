package wire

// Numbers of the Arrow IPC flatbuffers (format/Message.fbs and Schema.fbs).
const (
	metadataV5 = 4

	headerSchema          = 1
	headerDictionaryBatch = 2
	headerRecordBatch     = 3

	typeNull            = 1
	typeInt             = 2
	typeFloatingPoint   = 3
	typeBinary          = 4
	typeUTF8            = 5
	typeBool            = 6
	typeDecimal         = 7
	typeDate            = 8
	typeTime            = 9
	typeTimestamp       = 10
	typeInterval        = 11
	typeList            = 12
	typeStruct          = 13
	typeUnion           = 14
	typeFixedSizeBinary = 15
	typeFixedSizeList   = 16
	typeMap             = 17
	typeDuration        = 18
	typeLargeBinary     = 19
	typeLargeUTF8       = 20
	typeLargeList       = 21
	typeRunEndEncoded   = 22
	typeBinaryView      = 23
	typeUTF8View        = 24
	typeListView        = 25
	typeLargeListView   = 26
)

var refusedTypes = map[byte]string{
	typeInterval: "interval", typeUnion: "union", typeRunEndEncoded: "run_end_encoded", typeBinaryView: "binary_view",
	typeUTF8View: "utf8_view", typeListView: "list_view", typeLargeListView: "large_list_view",
}

const (
	continuation = 0xFFFFFFFF
	prefixSize   = 8  // continuation and metadata size
	hostAlign    = 64 // of what the encoder writes
	guestAlign   = 8  // of what the decoder accepts
)

func alignUp(n, to int64) int64 { return (n + to - 1) / to * to }
