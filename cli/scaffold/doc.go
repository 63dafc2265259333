// Package scaffold holds what `weir init` writes: the project templates, the
// sources of the example plugins, the SDK, and the demo's landing files.
//
// Invariants:
//
//   - A written project builds and runs without a registry: the SDK stands in
//     its folder sdk/, and its go.mod replaces the SDK's path by that folder.
//   - The same template and name give the same bytes, the landing files included.
//   - A file that exists is never overwritten.
//
// Template files end in .tmpl where the Go tool or git would otherwise take
// them for their own; the ending is dropped, and @NAME@ is the project's name.
package scaffold
