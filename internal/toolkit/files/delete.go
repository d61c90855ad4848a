package files

import "github.com/regie-run/regie/internal/tool"

type deleteArgs struct {
	Path string `json:"path" jsonschema:"the file, relative to the workspace"`
}

func (a deleteArgs) fileChange() wish { return wish{path: a.Path, mode: modeDelete} }

// deleteTool deletes files alone: of a directory nobody can see in one preview what goes, and a
// link is not what it leads to.
func (k *toolkit) deleteTool() (tool.Tool, error) {
	return tool.New(actionDefinition("files.delete_file",
		"Delete one file of the workspace. Its content is kept, so that a person can undo it. Directories and links are not deleted."),
		newChanger(k, deleteArgs.fileChange))
}
