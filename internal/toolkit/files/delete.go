package files

import "github.com/regie-run/regie/internal/tool"

type deleteArgs struct {
	Path string `json:"path" jsonschema:"the file, relative to the workspace"`
}

func (a deleteArgs) fileChange() wish { return wish{path: a.Path, mode: modeDelete} }

// deleteTool deletes only files: a preview cannot show everything in a directory. A link is
// deleted, not its target.
func (k *toolkit) deleteTool() (tool.Tool, error) {
	return tool.New(actionDefinition("files.delete_file",
		"Delete one file of the workspace. Its content is kept, so that a person can undo it. Directories and links are not deleted."),
		newChanger(k, deleteArgs.fileChange))
}
