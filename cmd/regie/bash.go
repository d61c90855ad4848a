package main

import (
	"io"

	"github.com/spf13/cobra"
)

// bareBash has cobra's script work without the package bash-completion, which it takes the words of
// the line from: = and : part words for bash, and not for us.
const bareBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
__regie_init_completion()
{
    local line=${COMP_LINE:0:COMP_POINT} i gap part last
    COMPREPLY=() words=() cur="" prev="" cword=0
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((i < COMP_CWORD)); then
            part=${COMP_WORDS[i]}
            gap=${line%%"$part"*}
        else
            gap=${line%%[![:space:]]*}
            part=${line#"$gap"}
        fi
        line=${line#"$gap$part"}
        last=$((${#words[@]} - 1))
        if ((last > 0)) && [[ -z $gap && ($part == [=:]* || ${words[last]} == *[=:]) ]]; then
            words[last]+=$part
        else
            words+=("$part")
        fi
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    ((cword == 0)) || prev=${words[cword - 1]}
}
fi
`

// inAnyBash adds bareBash to the script for bash.
func (c *command) inAnyBash(root *cobra.Command) {
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil {
		return
	}
	script := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if err := script(cmd, args); err != nil {
			return err
		}
		_, err := io.WriteString(c.stdout, bareBash)
		return err
	}
}
