package session

import (
	"encoding/json"

	"github.com/regie-run/regie"
)

func ParseModule(arguments json.RawMessage) (regie.Module, error) {
	var m struct {
		Question      string   `json:"question"`
		Options       []string `json:"options"`
		AllowFreeText bool     `json:"allow_free_text"`
	}
	err := json.Unmarshal(arguments, &m)
	return regie.Module{Kind: regie.ModuleChoice, Text: m.Question, Options: m.Options, AllowFreeText: m.AllowFreeText}, err
}

func CheckReply(_ regie.Module, r regie.QuestionReply) (regie.QuestionReply, error) { return r, nil }
func ReplyText(_ regie.Module, r regie.QuestionReply) string {
	data, _ := json.Marshal(r.Choices)
	return r.Text + string(data)
}
