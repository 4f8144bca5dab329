package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vigil/core"
)

// The protocol page is what people program against; its tables are the code's.
func TestProtocolPageHasTheTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	has := func(row string) {
		t.Helper()
		if !strings.Contains(page, "\n"+row) {
			t.Errorf("the page lacks the row: %s", row)
		}
	}
	forms := map[result]string{
		resultNone: "none", resultBool: "bool", resultStored: "(bytes, bool)", resultMaybe: "int or nil", resultInt: "int",
		resultText: "str", resultContext: "map shm_name, pool_size", resultPrepareStore: "map context",
		resultPrepareRetrieve: "map success, data, context", resultInts: "list of int",
	}
	refusals := map[string]string{
		forms[resultNone]: "nil", forms[resultBool]: "false", forms[resultStored]: "(empty, false)", forms[resultMaybe]: "nil",
		forms[resultInt]: "0", forms[resultText]: "empty", "list of str": "empty", forms[resultContext]: "no name, no bytes",
		forms[resultPrepareStore]: "no slots, no indices", forms[resultPrepareRetrieve]: "false, empty, empty",
		forms[resultInts]: "nil",
	}
	for number := Type(1); number < firstDisputed; number++ {
		e := entryOf(number)
		has(fmt.Sprintf("| %d | %s | %d | %v | %s |", number, e.name, len(e.payloads), e.pool, forms[e.result]))
	}
	for number, line := range map[Type]string{
		RegisterRope: "| %s | 33 or 25 | %d | %v |", GetExperimental: "| %s | 40 or 32 | %d | %v |",
		UnregisterRope: "| %s | 34, or 26 for an id that has rope state | %d | %v |",
	} {
		e := entryOf(number)
		has(fmt.Sprintf(line, e.name, len(e.payloads), e.pool))
	}
	settle := entryOf(Settle)
	has(fmt.Sprintf("| `%s` | %d | %v | %s |", settle.name, len(settle.payloads), settle.pool, forms[settle.result]))
	for name, value := range map[string]int{
		"MaxFrames": MaxFrames, "MaxMessageBytes": MaxMessageBytes, "MaxInlineBytes": MaxInlineBytes,
		"MaxReplyBytes": MaxReplyBytes, "MaxUIDBytes": MaxUIDBytes, "MaxNameBytes": MaxNameBytes, "MaxTokens": MaxTokens,
		"MaxBlocks": MaxBlocks, "MaxExports": core.MaxExports, "MaxGroups": core.MaxGroups, "MaxLayers": MaxLayers,
		"MaxDimensions": MaxDimensions, "MaxText": MaxText, "MaxWord": MaxWord, "MaxSalt": MaxSalt, "MaxHandle": MaxHandle,
		"MaxEvent": MaxEvent, "MaxFields": MaxFields, "MaxDepth": MaxDepth, "MaxRecords": MaxRecords, "MaxSettled": MaxSettled, "MaxPickle": MaxPickle,
	} {
		has(fmt.Sprintf("| %s | %d |", name, value))
	}
	for f := core.FailPayloadCount; f.String() != "unknown"; f++ {
		has(fmt.Sprintf("| `%v` |", f))
	}
	for form, row := range refusals {
		has(fmt.Sprintf("| %s | %s |", form, row))
	}
	if !strings.Contains(page, refusalMark) {
		t.Error("the page does not name the mark of a refusal")
	}
}
