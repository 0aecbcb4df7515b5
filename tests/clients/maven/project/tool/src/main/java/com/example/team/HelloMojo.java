package com.example.team;

import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugins.annotations.Mojo;

/** Says hello, so that tests see which version of the plugin runs. */
@Mojo(name = "hello", requiresProject = false)
public final class HelloMojo extends AbstractMojo {
    @Override
    public void execute() {
        getLog().info("hello from plugin 1.0-SNAPSHOT");
    }
}
