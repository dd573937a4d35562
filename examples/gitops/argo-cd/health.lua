-- Health of a SpeculativeModel. Argo CD gives scripts no string library.
local health = {}
local status = obj.status or {}

if status.observedGeneration ~= obj.metadata.generation then
  health.status = "Progressing"
  health.message = "The operator has not seen this spec yet."
  return health
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function holds(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end

if holds("Stalled") then
  health.status = "Degraded"
  health.message = conditions.Stalled.message
elseif holds("Reconciling") then
  health.status = "Progressing"
  health.message = conditions.Reconciling.message
elseif not holds("Ready") then
  health.status = "Progressing"
  health.message = conditions.Ready and conditions.Ready.message or "It is not Ready."
elseif conditions.Ready.reason == "ScaledToZero" then
  health.status = "Suspended"
  health.message = conditions.Ready.message
else
  health.status = "Healthy"
  health.message = conditions.Ready.message
  local speculation = conditions.SpeculationHealthy
  if speculation ~= nil and speculation.status == "False" then
    health.message = "It serves, but speculation is not healthy. " .. speculation.message
  end
end
return health
