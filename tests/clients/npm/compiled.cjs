'use strict';
// Keeps the compiled code of programs that are one large file, such as pnpm's, in the folder COMPILED: a third of the
// processor time of a run. Node 22 does so by itself.
const crypto = require('node:crypto');
const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

const LARGE = 1_000_000; // characters
const folder = process.env.COMPILED;
const compile = Module.prototype._compile;
const importing = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER; // absent in Node 18

if (Module.enableCompileCache) {
  Module.enableCompileCache(folder);
} else if (importing) {
  Module.prototype._compile = function (content, filename, ...rest) {
    if (content.length < LARGE) {
      return compile.call(this, content, filename, ...rest);
    }
    const digest = crypto.createHash('sha1').update(content).digest('hex'); // V8 compares the length only
    const file = path.join(folder, `${path.basename(filename)}-${digest}-${process.version}`);
    const cachedData = fs.existsSync(file) ? fs.readFileSync(file) : undefined;
    const text = Module.wrap(content.replace(/^#!/, '//'));
    const script = new vm.Script(text, { filename, cachedData, importModuleDynamically: importing });
    if (cachedData === undefined || script.cachedDataRejected) {
      process.on('exit', () => {
        const part = `${file}.${process.pid}`;
        fs.mkdirSync(folder, { recursive: true });
        fs.writeFileSync(part, script.createCachedData());
        fs.renameSync(part, file);
      });
    }
    const require = Module.createRequire(filename);
    require.main = process.mainModule;
    return script.runInThisContext().call(this.exports, this.exports, require, this, filename, path.dirname(filename));
  };
}
