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
	// Rules decide calls before a person does.
	Rules []Rule `yaml:"rules"`
}

// approvalExpiry is how long people have to decide unless approvals.expire says otherwise.
const approvalExpiry = "24h"
