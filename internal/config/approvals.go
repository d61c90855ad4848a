package config

import "time"

// Approvals are the app's word on what people are asked about (spec 4.4, 13).
type Approvals struct {
	// Require is the default: writes (also where it is empty), all or none.
	Require string `yaml:"require"`
	// RequireValidation has every call asked about, which no rule lifts (decision 49).
	RequireValidation bool `yaml:"require_validation"`
	// Expire is how long people have to decide; zero means 24 hours.
	Expire time.Duration `yaml:"expire"`
	// QuestionExpire is how long people have to answer a question; zero means 7 days (decision 74).
	QuestionExpire time.Duration `yaml:"question_expire"`
	// Private are files that are private: docs/salaries/**, docs/a.md, or *.pay for a name
	// anywhere. Once a session has read one, or a secret, and what others wrote, each call that
	// can send data out is asked about.
	Private []string `yaml:"private"`
	// Rules decide calls before a person does.
	Rules []Rule `yaml:"rules"`
}

// approvalExpiry and questionExpiry are how long people have to decide and to answer unless
// approvals.expire and approvals.question_expire say otherwise.
const (
	approvalExpiry = "24h"
	questionExpiry = "168h"
)
