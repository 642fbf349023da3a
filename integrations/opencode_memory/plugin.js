// @ts-check
/**
 * The memory of OpenCode: its tools, what a session starts with, what is recalled for a message, and the flush.
 *
 * All that is known of a memory is in `openclaw-memory`, of which one process stays: it gets each event as a line of
 * JSON, and answers with one. Nothing here may stop OpenCode: what fails is logged, and the session goes on.
 */

import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

import { TOOLS } from "./tools.js"

/** @typedef {import("@opencode-ai/plugin").Plugin} Plugin */
/** @typedef {import("@opencode-ai/plugin").PluginInput} PluginInput */
/** @typedef {import("@opencode-ai/plugin").Hooks} Hooks */
/** @typedef {import("@opencode-ai/plugin").Config} Config */
/** @typedef {import("@opencode-ai/plugin").ToolDefinition} ToolDefinition */
/** @typedef {Record<string, any>} Json */
/** @typedef {{workspace?: string, command?: string[], config?: string, tools?: string[], memory?: Json}} Settings */
/** @typedef {{providerID: string, modelID: string, room: number}} Model */

/** @typedef {{title: string, signal: AbortSignal}} Question */
/** @typedef {(text: string, question: Question) => Promise<string>} Ask */

/** A process that takes longer for an answer is ended, as is one that waits longer for the reply of a model. */
const SECONDS = 20
const MODEL_SECONDS = 300
/** A process that nothing is asked of for so long is ended; the next event starts another one. */
const IDLE_SECONDS = 300

/** Those that are there without `tools` in the settings. */
const DEFAULT_TOOLS = ["memory_search", "memory_get", "memory_append"]

/** @type {Plugin} */
async function server(input, options) {
  const settings = /** @type {Settings} */ (options ?? {})
  const folder = workspaceOf(settings, input.directory)
  const named = settings.workspace !== undefined
  if (!named && !["MEMORY.md", ".memory", ".memory.toml"].some((name) => existsSync(join(folder, name)))) return {}

  const { client } = input
  /** @type {Map<string, Promise<string>>} what each session starts with: the same text until it is compacted */
  const starts = new Map()
  /** @type {Map<string, Promise<boolean>>} */
  const children = new Map()
  /** @type {Set<string>} the sessions of flushes and intents that are under way */
  const asking = new Set()
  /** @type {Map<string, Model>} the model that each session talked to last */
  const models = new Map()
  /** @type {Map<string, Promise<unknown>>} */
  const turns = new Map()
  /** @type {Set<Promise<unknown>>} */
  const running = new Set()
  /** @type {Set<unknown>} the notices that were said */
  const noticed = new Set()

  /** @param {unknown} error */
  const warn = async (error) => {
    const message = error instanceof Error ? error.message : String(error)
    await client.app.log({ body: { service: plugin.id, level: "warn", message } }).catch(() => {})
  }

  const [program = "openclaw-memory", ...first] = settings.command ?? []
  const config = settings.config ? ["--config", settings.config] : []
  const library = connect(program, [...first, "hook", "opencode", "--workspace", folder, ...config])
  const tools = Object.keys(TOOLS).filter((name) => (settings.tools ?? DEFAULT_TOOLS).includes(name))

  /**
   * Send an event, and return the answer; {} where there is none.
   * @param {string} event
   * @param {Json} given
   * @param {Ask} [ask]
   * @returns {Promise<Json>}
   */
  const hook = (event, given, ask) => {
    const sent = { event, ...given, tools, settings: settings.memory ?? {} }
    const done = library.request(sent, ask).then(
      async (answer) => {
        for (const notice of answer.notices ?? []) {
          if (!noticed.has(notice)) await warn(notice)
          noticed.add(notice)
        }
        return answer
      },
      async (error) => {
        await warn(error)
        return {}
      },
    )
    running.add(done)
    return done.finally(() => running.delete(done))
  }

  /**
   * Whether a session is one of a subagent, or of a flush: these are not the user's, and nothing is done for them.
   * @param {string} sessionID
   */
  const isChild = (sessionID) => {
    let known = children.get(sessionID)
    if (!known) {
      known = client.session
        .get({ path: { id: sessionID } })
        .then(({ data }) => data?.parentID !== undefined)
        .catch(() => false)
      children.set(sessionID, known)
    }
    return known
  }

  /**
   * Do what keeps something of a session after what was begun before: a snapshot has the last words.
   * @param {string} sessionID
   * @param {() => Promise<unknown>} work
   */
  const inTurn = (sessionID, work) => {
    const done = (turns.get(sessionID) ?? Promise.resolve()).then(work).catch(warn)
    turns.set(sessionID, done)
    running.add(done)
    return done.finally(() => running.delete(done))
  }

  /** @param {string} sessionID */
  const start = (sessionID) => {
    let text = starts.get(sessionID)
    if (!text) {
      text = hook("session.created", { sessionID }).then(({ system }) => {
        if (system === undefined) starts.delete(sessionID) // the next message tries again
        return String(system ?? "")
      })
      starts.set(sessionID, text)
    }
    return text
  }

  /**
   * What the user and the assistant said since the last compaction, without what tools and programs did.
   * @param {string} sessionID
   */
  const said = async (sessionID) => {
    const { data = [] } = await client.session.messages({ path: { id: sessionID } })
    const from = data.findLastIndex(({ info }) => info.role === "assistant" && info.summary === true) + 1
    return data.slice(from).flatMap(({ info, parts }) => {
      const text = wordsOf(parts)
      return text ? [{ id: info.id, role: info.role, timestamp: info.time.created, text }] : []
    })
  }

  /**
   * Ask the session's model in a child session, which has no tools and is gone afterwards.
   * @param {string} parentID
   * @param {{providerID: string, modelID: string} | undefined} model
   * @returns {Ask}
   */
  const askModel = (parentID, model) => async (text, { title, signal }) => {
    const made = await client.session.create({ body: { parentID, title } })
    if (!made.data) throw new Error("OpenCode made no session to ask the model in")
    const { id } = made.data
    signal.addEventListener("abort", () => client.session.abort({ path: { id } }).catch(() => {}))
    children.set(id, Promise.resolve(true))
    asking.add(id)
    try {
      const replied = await client.session.prompt({
        path: { id },
        body: {
          ...(model ? { model: { providerID: model.providerID, modelID: model.modelID } } : {}),
          tools: { "*": false },
          parts: [{ type: "text", text }],
        },
      })
      const failed = replied.data?.info.error
      if (!replied.data || failed) throw new Error(failed ? JSON.stringify(failed.data) : "the model gave no reply")
      // Where the reply has filled the window, a summary comes after it.
      const { data = [] } = await client.session.messages({ path: { id } })
      return wordsOf(data.find(({ info }) => info.role === "assistant")?.parts ?? [])
    } finally {
      asking.delete(id)
      await client.session.delete({ path: { id } }).catch(warn)
    }
  }

  return {
    async config(config) {
      const known = /** @type {Config & {skills?: {paths?: string[]}}} */ (config)
      const paths = known.skills?.paths ?? []
      known.skills = { ...known.skills, paths: [...paths, fileURLToPath(new URL("./skill", import.meta.url))] }
    },

    tool: Object.fromEntries(
      tools.map((name) => {
        const { description, parameters } = /** @type {typeof TOOLS[string]} */ (TOOLS[name])
        /** @param {Json} args @param {{sessionID: string}} context */
        const execute = async (args, { sessionID }) => {
          const { output } = await hook("tool", { sessionID, tool: name, args })
          if (typeof output === "string") return output
          const error = `the memory gave no answer: \`openclaw-memory hook opencode --workspace ${folder}\` says where its log is`
          return JSON.stringify({ status: "unavailable", error })
        }
        // OpenCode takes a JSON schema as it takes Zod's, which the published types alone know.
        const made = /** @type {unknown} */ ({ description, args: parameters.properties, execute })
        return [name, /** @type {ToolDefinition} */ (made)]
      }),
    ),

    async "tool.definition"({ toolID }, output) {
      const own = Object.hasOwn(TOOLS, toolID) ? TOOLS[toolID] : undefined
      // Of the properties alone, OpenCode would make a schema that requires all of them.
      if (own) Object.assign(output, { jsonSchema: own.parameters })
    },

    async event({ event }) {
      if (event.type === "session.created") {
        const { id, parentID } = event.properties.info
        children.set(id, Promise.resolve(parentID !== undefined))
        if (parentID === undefined) await start(id)
      } else if (event.type === "session.idle") {
        const { sessionID } = event.properties
        if (await isChild(sessionID)) return
        const messages = said(sessionID)
        messages.catch(() => {}) // it is said when its turn comes
        await inTurn(sessionID, async () => hook("session.idle", { sessionID, messages: await messages }))
      } else if (event.type === "session.compacted") {
        const { sessionID } = event.properties
        if (await isChild(sessionID)) return
        await inTurn(sessionID, () => hook("session.compacted", { sessionID }))
      } else if (event.type === "session.deleted") {
        const { id, parentID } = event.properties.info
        if (parentID === undefined) await inTurn(id, () => hook("session.deleted", { sessionID: id }))
        turns.delete(id)
        starts.delete(id)
        models.delete(id)
        children.delete(id)
      }
    },

    async "chat.params"({ sessionID, model }) {
      // Half of the window: the other half is for the agent's prompts, and for the reply.
      models.set(sessionID, { providerID: model.providerID, modelID: model.id, room: model.limit.context >> 1 })
    },

    async "chat.message"({ sessionID, model = models.get(sessionID) }, { message, parts }) {
      const text = wordsOf(parts)
      if (!text || (await isChild(sessionID))) return
      await start(sessionID) // which has the index follow the files
      const { recalled } = await hook("chat.message", { sessionID, text }, askModel(sessionID, model))
      if (!recalled) return
      // Parts are shown in the order of their ids.
      const id = `${parts.at(-1)?.id ?? "prt"}${randomUUID().slice(0, 8)}`
      parts.push({ id, sessionID, messageID: message.id, type: "text", text: recalled, synthetic: true })
    },

    async "experimental.chat.system.transform"({ sessionID }, { system }) {
      if (sessionID === undefined || (await isChild(sessionID))) return
      const text = await start(sessionID)
      if (text) system.push(text)
    },

    async "experimental.session.compacting"({ sessionID }) {
      // The session of a flush may be compacted itself: it is no occasion for another flush.
      if (await isChild(sessionID)) return
      await inTurn(sessionID, async () => {
        const given = { sessionID, messages: await said(sessionID), room: models.get(sessionID)?.room }
        await hook("session.compacting", given, askModel(sessionID, models.get(sessionID)))
        starts.delete(sessionID) // the note that the flush has written is part of the next one
      })
    },

    async "experimental.compaction.autocontinue"({ sessionID }, output) {
      if (asking.has(sessionID)) output.enabled = false
    },

    async dispose() {
      while (running.size) await Promise.allSettled([...running])
      library.end()
    },
  }
}

/**
 * @param {Settings} settings
 * @param {string} directory
 */
function workspaceOf({ workspace = "." }, directory) {
  return workspace === "~" || workspace.startsWith("~/") ? join(homedir(), workspace.slice(1)) : resolve(directory, workspace)
}

/** @param {{type: string, text?: string, synthetic?: boolean, ignored?: boolean}[]} parts */
function wordsOf(parts) {
  const own = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
  return own.map((part) => part.text ?? "").join("\n\n").trim()
}

/**
 * Keep one process of a program, which answers requests by their ids; a request starts it where none runs.
 * @param {string} program
 * @param {string[]} called
 */
function connect(program, called) {
  /** @typedef {{read: (line: Json) => void, fail: (why: string) => void}} Pending */
  /** @typedef {{write: (line: Json) => void, end: () => void, kill: (why: string) => void, pending: Map<number, Pending>}} Running */
  /** @type {Running | undefined} */
  let current
  /** @type {NodeJS.Timeout | undefined} */
  let idle
  let last = 0

  /** @returns {Running} */
  const start = () => {
    const child = spawn(program, called, { stdio: ["pipe", "pipe", "ignore"] })
    /** @type {Running} */
    const running = {
      pending: new Map(),
      write: (line) => child.stdin.write(`${JSON.stringify(line)}\n`),
      end: () => child.stdin.end(),
      kill: (why) => {
        stop(why)
        child.kill("SIGKILL")
      },
    }
    /** @param {string} why */
    const stop = (why) => {
      if (current === running) current = undefined
      for (const { fail } of running.pending.values()) fail(why)
    }
    child.on("error", (error) => stop(`${program} cannot be run, so there is no memory: ${error.message}`))
    child.on("close", (code, signal) => stop(`${program} ended without an answer: ${signal ?? `exit code ${code}`}`))
    child.stdin.on("error", () => {}) // it has ended already, which is said when it closes
    createInterface({ input: child.stdout }).on("line", (text) => {
      /** @type {Json} */
      let line
      try {
        line = JSON.parse(text)
      } catch {
        return // what else a program may print
      }
      running.pending.get(line.id)?.read(line)
    })
    return running
  }

  const end = () => {
    clearTimeout(idle)
    current?.end()
    current = undefined
  }

  /**
   * @param {Json} given
   * @param {Ask} [ask]
   * @returns {Promise<Json>}
   */
  const request = (given, ask) =>
    new Promise((fulfil, reject) => {
      const running = (current ??= start())
      const id = ++last
      const answered = new AbortController()
      /** @type {NodeJS.Timeout | undefined} */
      let late
      /** @param {number} seconds */
      const allow = (seconds) => {
        clearTimeout(late)
        late = setTimeout(() => running.kill(`${program} took more than ${seconds} s for ${given.event}`), seconds * 1000)
      }
      const finish = () => {
        clearTimeout(late)
        answered.abort()
        running.pending.delete(id)
        clearTimeout(idle)
        idle = setTimeout(() => current?.pending.size || end(), IDLE_SECONDS * 1000)
        idle.unref()
      }
      running.pending.set(id, {
        read: (line) => {
          if (line.question === undefined) {
            finish()
            fulfil(line)
            return
          }
          const { question, ask: text, title } = line
          /** @param {Json} reply */
          const reply = (reply) => {
            if (answered.signal.aborted) return
            allow(SECONDS)
            running.write({ question, ...reply })
          }
          allow(MODEL_SECONDS)
          if (ask) {
            ask(text, { title, signal: answered.signal }).then(
              (replied) => reply({ reply: replied }),
              (error) => reply({ error: String(error?.message ?? error) }),
            )
          } else reply({ error: "no model is at hand" })
        },
        fail: (why) => {
          finish()
          reject(new Error(why))
        },
      })
      allow(SECONDS)
      running.write({ id, ...given })
    })

  return { request, end }
}

const plugin = { id: "opencode-memory", name: "Memory", version: "2.0.0", server }

export default plugin
